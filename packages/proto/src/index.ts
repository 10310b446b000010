// The contract between coordinator, runners and clients, as `proto/holdfast/v1/*.proto` defines it.
//
// Everything under `gen` is generated (`npm run generate -w packages/proto`) and committed. This file exports
// all generated code of the contract, and the options that a reader of the contract needs.

export * from "./gen/holdfast/v1/audit_service_pb.js";
export * from "./gen/holdfast/v1/catalogue_service_pb.js";
export * from "./gen/holdfast/v1/environment_service_pb.js";
export * from "./gen/holdfast/v1/errors_pb.js";
export * from "./gen/holdfast/v1/health_service_pb.js";
export * from "./gen/holdfast/v1/run_service_pb.js";
export * from "./gen/holdfast/v1/runner_service_pb.js";
export * from "./gen/holdfast/v1/schedule_service_pb.js";
export * from "./gen/holdfast/v1/session_pb.js";
export * from "./gen/holdfast/v1/session_service_pb.js";
export * from "./gen/holdfast/v1/storage_service_pb.js";
export * from "./gen/holdfast/v1/token_service_pb.js";
export {
  Role,
  RoleSchema,
  json as jsonOption,
  event_id as eventIdOption,
  last_event_id as lastEventIdOption,
  idempotency_header as idempotencyHeaderOption,
  roles as rolesOption,
  status as statusOption,
  status_when_done as statusWhenDoneOption,
  batch as batchOption,
  starts as startsOption,
} from "./gen/holdfast/v1/options_pb.js";
export { environmentMessage, environmentOf } from "./environment-message.ts";
export { budgetMessage, budgetOf, type BudgetLimits } from "./budget-message.ts";
export { SERVICES } from "./services.ts";
export { http as httpOption } from "./gen/google/api/annotations_pb.js";
export { type HttpRule } from "./gen/google/api/http_pb.js";
export { type FieldRules, field as fieldOption } from "./gen/buf/validate/validate_pb.js";
export { COMMENTS } from "./gen/comments.js";
export {
  callOf as lineCallOf,
  FrameKind,
  frameOf,
  FrameReader,
  GREETING,
  greetingOf,
  DEPLOYMENT_HEADER,
  LINE_PATH,
  LINE_TYPE,
  readCall as readLineCall,
  readGreeting,
  type Frame,
  type Greeting,
} from "./line.ts";
