// `@holdfast/proto/view`: what sessions mean to people, as pure functions over plain JSON that a command and a page share.

export { type InboxItem, inInboxOrder, principalOf } from "./inbox.ts";
export {
  type AnswerKind,
  answerLines,
  type AskedQuestion,
  type QuestionKind,
  type QuestionView,
  viewQuestion,
} from "./question.ts";
