// Verbs, as far as names of tests need them: whether a name is a sentence, and whether it begins without a
// subject.
//
// The lists hold the verbs that names of tests use. A name with another verb is reported, and its author adds
// the verb.

const AUXILIARIES =
  "is are was were has have had do does did can cannot may might must will would shall should could isn't aren't doesn't don't can't won't";

/** Verbs whose form with an s is no noun here, so that it can only be a verb. */
const VERBS =
  "abandon accept acknowledge add agree allow appear apply arrive ask assign await become begin believe belong bound bring " +
  "build carry catch choose clean close collect come compare complete compute confirm connect consume contain continue convert " +
  "cost cover create decide decode decrease delete deliver deny depend deregister describe detect die differ discard diverge " +
  "drain draw eat elect emit enable encode end enqueue enter equal establish evict exceed exclude execute exist exit expect expire " +
  "explain fail fall fall fetch find finish fit follow forget form forward free get give go greet grow handle hang happen have hear " +
  "heed help hold hurt ignore increase inherit insert install interrupt invent join keep kill know lack lapse last lead lean learn " +
  "leave let lie listen live load lose lower make match mean meet mention merge miss move need notice notify occur offer omit open " +
  "outlive overwrite own parse pass pause pay permit persist pick poll pollute preserve prevent print produce prove provide publish " +
  "pull push put raise reach read receive reconnect recover redeliver reduce refer refuse register reject remain remember remove rename " +
  "renew repair repeat replace reply report require reserve resolve respond restart resume retry return reuse reveal revoke rise satisfy " +
  "save say see send serve set settle shorten show shut skip sleep solve sort spare spawn speak spend split spoil stand start stay steer " +
  "stop store stumble succeed supply survive suspend swallow swap take tell tolerate touch treat try understand unlock update use vanish " +
  "verify wait wake want warn win withdraw withstand work write yield";

/** Verbs whose form with an s is also the plural of a noun here. */
const ALSO_NOUNS =
  "abort account address aim answer approve attempt audit back batch block break budget call cancel cause change charge check claim " +
  "clock command comment commit concern conflict consult copy count crash cut dangle default delay demand double edit effect error escape " +
  "experience export fault feature fence file filter fire flag fork function group guard hand heir hint hook host import issue jump label " +
  "lease level lift limit line link list lock log look loop map mark matter measure migrate model name note number order pack page park part " +
  "pipe place plan point position prefer price prompt quote race rank rate reason record release request rest result route rule run sample " +
  "schedule scope script seed segment share shift signal size slip sound span state step stream stress strand suit summary surround switch " +
  "target task test tick time title token trace track transfer trigger trip trust turn type vary version view watch weigh work wrap";

const BASES = VERBS.split(" ");
const THIRD_PERSON = new Set(BASES.map(withS));
const FINITE = new Set([
  ...AUXILIARIES.split(" "),
  ...BASES,
  ...THIRD_PERSON,
  ...ALSO_NOUNS.split(" ").map(withS),
]);
const BEGINNINGS = new Set([...AUXILIARIES.split(" "), ...THIRD_PERSON]);

export function hasVerb(sentence: string): boolean {
  return wordsOf(sentence).some((word) => FINITE.has(word));
}

/** "holds one event per line" leaves open what holds it. */
export function beginsWithVerb(sentence: string): boolean {
  return BEGINNINGS.has(wordsOf(sentence)[0] ?? "");
}

function wordsOf(sentence: string): string[] {
  return (sentence.match(/[\p{L}\p{N}\uE000$%][\p{L}\p{N}\uE001'’-]*/gu) ?? []).map((word) =>
    word.toLowerCase().replace("’", "'"),
  );
}

function withS(verb: string): string {
  if (/[^aeiou]y$/.test(verb)) return verb.replace(/y$/, "ies");
  return /(s|x|z|ch|sh|o)$/.test(verb) ? `${verb}es` : `${verb}s`;
}
