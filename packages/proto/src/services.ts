// `SERVICES`: all services of the contract, for code that handles each of them.

import type { DescService } from "@bufbuild/protobuf";
import { AuditService } from "./gen/holdfast/v1/audit_service_pb.js";
import { CatalogueService } from "./gen/holdfast/v1/catalogue_service_pb.js";
import { EnvironmentService } from "./gen/holdfast/v1/environment_service_pb.js";
import { HealthService } from "./gen/holdfast/v1/health_service_pb.js";
import { RunnerService } from "./gen/holdfast/v1/runner_service_pb.js";
import { RunService } from "./gen/holdfast/v1/run_service_pb.js";
import { ScheduleService } from "./gen/holdfast/v1/schedule_service_pb.js";
import { SessionService } from "./gen/holdfast/v1/session_service_pb.js";
import { StorageService } from "./gen/holdfast/v1/storage_service_pb.js";
import { TokenService } from "./gen/holdfast/v1/token_service_pb.js";

export const SERVICES: readonly DescService[] = [
  SessionService,
  RunnerService,
  RunService,
  StorageService,
  ScheduleService,
  TokenService,
  AuditService,
  CatalogueService,
  EnvironmentService,
  HealthService,
];
