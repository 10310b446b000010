// The environment of this process (`hostEnvironment`), the default source of PATH and HOME for commands. No
// other file of this package reads it. The allow-list in `environment.ts` decides which variables are used.

export { env as hostEnvironment } from "node:process";
