// Hash: the function that turns a text into its hash. Each runtime passes its own, as `core` imports no
// library.

/** A text's hash: 43 characters of base64url (SHA-256). Pure and synchronous. */
export type Hash = (text: string) => string;
