// Plants a mutant in files that Node itself loads: other packages, and the programs that tests start.

import { registerHooks } from "node:module";
import { edited, type Edit } from "./mutant-edit.ts";

const planted = process.env["HOLDFAST_MUTANT"];
// A process that gets the options of its parent without its other variables has no mutant.
const edit = planted === undefined ? undefined : (JSON.parse(planted) as Edit);

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (edit === undefined || !url.endsWith(edit.file)) return loaded;
    const source =
      typeof loaded.source === "string"
        ? loaded.source
        : new TextDecoder().decode(loaded.source ?? new Uint8Array());
    return { ...loaded, source: edited(source, edit) };
  },
});
