// `@holdfast/proto/view`: what sessions mean to people, as pure functions over plain JSON that a command and
// a page share.

export {
  endsAttempt,
  type JournalEvent,
  type PlainError,
  type PlainRecord,
  type RecordType,
} from "./journal-event.ts";
export {
  TimelineBuilder,
  type TimelineChildRef,
  type TimelineItem,
  type TimelineMark,
  type TimelineTurn,
} from "./timeline.ts";
export { viewCause } from "./journal/cause.ts";
export { itemFacts, itemName, timelineFacts, turnFacts, usageFacts } from "./timeline-words.ts";
export { type BudgetUse, budgetUses, inTreeOrder, nodeFacts, type PlainAccount } from "./tree.ts";
export { EventReader } from "./journal/event-reader.ts";
export { forkChoices, type ForkChoice } from "./journal/fork-point.ts";
export { commonRows, JournalRows, type JournalRow } from "./journal/journal-rows.ts";
export { foldRows, jsonRows, type JsonRow } from "./journal/json-rows.ts";
export { type CallView, viewCall } from "./journal/call.ts";
export {
  foldChange,
  foldOutput,
  type ReplyParts,
  replyOf,
  resultOf,
  type ResultView,
  viewResult,
} from "./journal/reply.ts";
export {
  CUT_OFF,
  CUT_OFF_RESULT,
  isWrittenByAdapter,
  LIMITED,
  OVER_BUDGET,
  RESTARTED,
  SESSION_CANCELLED,
  SUSPENDED,
  TURN_FAILED,
  TURN_INTERRUPTED,
} from "./journal/written-texts.ts";
export { type WorkCall, type WorkItem, WorkItems } from "./journal/work-items.ts";
export { stepsText, THINKING, WorkProgress } from "./journal/work-progress.ts";
export {
  deliveryOf,
  planOf,
  type PlanStepView,
  stepText,
  subAgentCallOf,
  withoutReplacedPlans,
} from "./journal/entry.ts";
export {
  addCosts,
  addUsage,
  type Cost,
  costText,
  isUncounted,
  exactUsdText,
  NO_COST,
  ownCostText,
  uncountedText,
  usdText,
} from "./cost.ts";
export { type CostSum, type CostSums, type PlainSessionCost, sumCosts, totalText } from "./cost-sums.ts";
export { type InboxItem, inInboxOrder, principalOf, repeatsAction } from "./inbox.ts";
export {
  answerText,
  type AnswerKind,
  answerLines,
  questionNumber,
  type AskedQuestion,
  type ListedQuestion,
  type QuestionView,
  unnamedAnswer,
  viewQuestion,
} from "./question.ts";
export { type DiffFile, type DiffLine, parseDiff } from "./worktree/parse-diff.ts";
export { type PlainWorktree, workText } from "./worktree/work.ts";
export { visibleText } from "./text/visible-text.ts";
export { type Status, STATUSES } from "./status.ts";
export { AGENT_REPORT, isBlameless, pauseText, type PlainPause, type PlainWait, signalText } from "./wait.ts";
export {
  type PlainItem,
  partlyOfferedAgents,
  partlyOfferedText,
  type UnofferedAgent,
  unofferedAgents,
  unofferedText,
} from "./unoffered-agents.ts";
export {
  causeText,
  inLiveOrder,
  isWhyOfCause,
  LIVE_STATUSES,
  raisedLimit,
  restartText,
  type PlainExhausted,
  type PlainQuota,
  type PlainSession,
  whyText,
  type WhyContext,
} from "./why.ts";
