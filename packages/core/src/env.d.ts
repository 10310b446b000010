// The little of the host that core may see: its own address, to leave itself out of error lines.
interface ImportMeta {
  readonly url: string;
}
