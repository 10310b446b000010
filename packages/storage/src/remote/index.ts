// The storage of a coordinator, and the connection to it for whoever speaks another of its services.

export { CoordinatorTime } from "./coordinator-time.ts";
export { CoordinatorConnection, type ConnectionOptions } from "./coordinator-connection.ts";
export { openRemoteStorage, RemoteStorage, type RemoteStorageOptions } from "./remote-storage.ts";
