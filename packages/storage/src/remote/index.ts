// RemoteStorage, the storage of a coordinator, and CoordinatorConnection, for clients of its other services.

export { CoordinatorTime } from "./coordinator-time.ts";
export { CoordinatorConnection, type ConnectionOptions } from "./coordinator-connection.ts";
export {
  openRemoteStorage,
  RemoteStorage,
  type ReadPatience,
  type RemoteStorageOptions,
} from "./remote-storage.ts";
