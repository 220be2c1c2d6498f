import { defineConfig } from "vitest/config";

/** The real service, a real browser; see `browser/`. */
export default defineConfig({
  test: { include: ["browser/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false },
});
