// `@holdfast/proto/zod`: the schema library, which the published packages share.
//
// `npm run pack` bundles it here and sends every import of `zod` to this file. A copy in each package would
// be loaded and kept in memory for each of them.

import * as z from "./zod-names.ts";

export * from "./zod-names.ts";
export { z };
