// The operating system, as the processes of Holdfast use it. They keep files that only their user reads,
// choose the variables of programs, and keep keys out of them. `@holdfast/system/processes` starts programs
// and ends them; a process that starts none does not load it.

export {
  createPrivate,
  isWritableByOthers,
  makePrivateFolder,
  openPrivateAppend,
  replacePrivate,
} from "./files/private-file.ts";
export { KEY_FILE_FIX, readKeyFile } from "./files/key-file.ts";
export { dataFolder } from "./files/data-folder.ts";
export { requireFileVersion } from "./files/file-version.ts";
export { readUserFile } from "./files/user-file.ts";
export { NODE_FLOORS, nodeWarning } from "./node-floor.ts";
export { ownFile } from "./own-file.ts";
export { isOlder, packageVersion } from "./package-version.ts";
export {
  type Environment,
  INHERITED_VARIABLES,
  layeredEnvironment,
  scrubEnvironment,
} from "./processes/environment.ts";
export { OutputCapture } from "./processes/output-capture.ts";
export { OutputLines } from "./processes/output-lines.ts";
export {
  describeProcessEnd,
  isUrgentAbort,
  type ProcessEnd,
  type StopMeans,
  UrgentAbortError,
} from "./processes/process-end.ts";
export {
  DeclaredSecrets,
  declaredSecretsOf,
  isSecretName,
  isStoredSecret,
  namesOfSecrets,
  type OptionalSecrets,
  type SecretSource,
  storedSecret,
  type WantedSecrets,
  wantedSecretsOf,
} from "./secrets/declared-secrets.ts";
export {
  type OwnKeys,
  replaceProcess,
  replaceWithoutKeys,
  withHandedKeys,
  withoutKeys,
} from "./secrets/handed-keys.ts";
export { keyVariables, PROVIDER_KEY_NAMES } from "./secrets/key-variables.ts";
export { type RedactedText, Redactor } from "./secrets/redactor.ts";
export { secretForms } from "./secrets/secret-forms.ts";
