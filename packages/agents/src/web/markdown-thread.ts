// The thread that makes Markdown of one page of HTML. Its data is the page, and its message the text.

import { parentPort, workerData } from "node:worker_threads";
import Turndown from "turndown";

const converter = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-" });
converter.remove(["script", "style", "noscript", "iframe", "template"]);
converter.remove((node) => node.nodeName.toLowerCase() === "svg");
parentPort?.postMessage(converter.turndown(workerData as string).trim());
