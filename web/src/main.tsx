/** Starts the page. */
import { options, render } from "preact";
import { App } from "./app";
import { start } from "./live/feed";
import { prefs, show } from "./live/prefs";
import "./style/base.css";
import "./style/bar.css";
import "./style/panels.css";
import "./style/tables.css";
import "./style/forms.css";

// All changes of a moment are drawn in one frame.
options.debounceRendering = (draw) => {
  requestAnimationFrame(() => draw());
};

show(prefs.get());
const root = document.getElementById("app");
if (root) render(<App />, root);
start();
