// The little of the host that core may see. Its own address leaves its files out of error lines. A signal
// only passes through it.
interface ImportMeta {
  readonly url: string;
}
interface AbortSignal {
  readonly aborted: boolean;
}
