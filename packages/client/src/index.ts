// The client of a coordinator: for programs by the entry `holdfast/client`, and for the command.

export {
  createClient,
  type ClientOptions,
  type HoldfastClient,
  type RemoteEvent,
  type RemoteSession,
  type RemoteStartOptions,
  type RemoteStatus,
} from "./client.ts";
export { onlyQuestion } from "./only-question.ts";
