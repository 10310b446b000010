// Where commands get PATH and HOME from when nobody says otherwise: the one place of this package that looks at the
// environment of its process. What is taken of it is decided by the allow-list in `environment.ts`.

export { env as hostEnvironment } from "node:process";
