// The secrets of a process, for programs and commands that start agents. It loads nothing of a runner.

export { openKeychain, type Keychain } from "./keychain.ts";
export { askMasked } from "./masked-prompt.ts";
export { SecretPlaces, type SecretPlace, type SecretPlacesOptions } from "./secret-places.ts";
