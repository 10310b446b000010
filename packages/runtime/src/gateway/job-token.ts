// `JobToken`: the token by which an executor calls the gateway of its run. The gateway makes it, and it ends
// with the gateway. It is no token of a coordinator, and no coordinator accepts it.
//
//   - A token is `hf_job_`, 64 hex digits and 8 of a checksum, as those of a coordinator are, so that
//     scanners find leaked ones.
//   - Tokens are compared in constant time, by their hashes.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

const PREFIX = "hf_job_";

export class JobToken {
  readonly text: string;
  readonly #hash: Buffer;

  constructor() {
    const secret = `${PREFIX}${randomBytes(32).toString("hex")}`;
    this.text = `${secret}${sha256(secret).toString("hex").slice(0, 8)}`;
    this.#hash = sha256(this.text);
  }

  is(given: string | undefined): boolean {
    return given !== undefined && timingSafeEqual(sha256(given), this.#hash);
  }
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
