// Plants a mutant in files that Node itself loads: other packages, and the programs that tests start.

import { registerHooks } from "node:module";
import { edited, type Edit } from "./mutant-edit.ts";

const edit = JSON.parse(process.env["HOLDFAST_MUTANT"]!) as Edit;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith(edit.file)) return loaded;
    const source =
      typeof loaded.source === "string"
        ? loaded.source
        : new TextDecoder().decode(loaded.source ?? new Uint8Array());
    return { ...loaded, source: edited(source, edit) };
  },
});
