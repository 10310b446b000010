const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const WEEKDAYS = "1-5";

/** The words for the times of a cron line, where it is one that many people write; empty for any other. */
export function cronWords(cron: string): string {
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5) return "";
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  if (month !== "*") return "";
  const isEvery = day === "*" && weekday === "*";
  const every = /^\*\/(\d+)$/.exec(minute)?.[1];
  if (isEvery && hour === "*" && (minute === "*" || every !== undefined))
    return every === undefined || every === "1" ? "every minute" : `every ${every} minutes`;
  if (!/^\d{1,2}$/.test(minute)) return "";
  if (isEvery && hour === "*") return `every hour at minute ${minute}`;
  if (!/^\d{1,2}$/.test(hour)) return "";
  const time = `at ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (isEvery) return `every day ${time}`;
  if (day === "*" && weekday === WEEKDAYS) return `every weekday ${time}`;
  if (day === "*" && /^[0-7]$/.test(weekday)) return `every ${DAYS[Number(weekday)]} ${time}`;
  return weekday === "*" && /^\d{1,2}$/.test(day) ? `on day ${day} of each month ${time}` : "";
}
