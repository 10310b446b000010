// The thread of a task imports this module first: a user's files load there as they do in the process.

import { resolveOurselves } from "./own-packages.ts";
import { loadTypeScript } from "./typescript-files.ts";

resolveOurselves();
loadTypeScript();
