import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Everything that a browser loads, packed, is at most this. */
const BYTES_MAX = 60_000;

/** What the page is made of besides our own code; their licence asks that its text goes along. */
const licences = ["preact", "uplot"]
  .map((name) => `${name}: ${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}`)
  .join("\n\n");

/** Beside each file its packed form, so that the service packs nothing while it runs. */
function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    enforce: "post",
    generateBundle(_options, bundle) {
      let bytes = 0;
      for (const [fileName, file] of Object.entries(bundle)) {
        if (file.type === "chunk") file.code = `/*! ${licences} */\n${file.code}`;
        const source = gzipSync(file.type === "chunk" ? file.code : file.source, { level: 9 });
        bytes += source.length;
        this.emitFile({ type: "asset", fileName: `${fileName}.gz`, source });
      }
      if (bytes > BYTES_MAX) this.error(`the page is ${bytes} bytes packed; it may have ${BYTES_MAX}`);
      this.info(`${bytes} bytes packed`);
    },
  };
}

/** `npm run dev` talks to a service that runs already; it takes commands only from its own pages, so say we are one. */
const service = process.env["STOCKADE_URL"] ?? "http://127.0.0.1:7077";
const proxy = { target: service, changeOrigin: true, headers: { origin: service } };

export default defineConfig({
  plugins: [packed()],
  // The build script removes what was there: git keeps a file in this folder.
  build: {
    outDir: "dist",
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: true,
  },
  server: { proxy: { "/v1": proxy, "/metrics": proxy } },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"], environment: "node" },
} as Parameters<typeof defineConfig>[0]);
