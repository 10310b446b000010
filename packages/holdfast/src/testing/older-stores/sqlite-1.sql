CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE session ( session INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, input TEXT, input_blob TEXT, seed INTEGER NOT NULL, flags INTEGER NOT NULL, format INTEGER NOT NULL, parent TEXT, origin TEXT, created_at INTEGER NOT NULL, checksum INTEGER NOT NULL );
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;
CREATE TABLE state ( session INTEGER PRIMARY KEY, status TEXT NOT NULL, pause_reason TEXT, waits TEXT, wake_at INTEGER, due_at INTEGER, cancel TEXT, overdue_at INTEGER, checkpoint_seq INTEGER, next_seq INTEGER NOT NULL, entry_count INTEGER NOT NULL, turn INTEGER NOT NULL, inbox INTEGER NOT NULL, output TEXT, output_blob TEXT, error TEXT, rest TEXT, updated_at INTEGER NOT NULL, ended_at INTEGER, checksum INTEGER NOT NULL );
CREATE INDEX state_due ON state (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX state_overdue ON state (overdue_at) WHERE overdue_at IS NOT NULL;
CREATE INDEX state_exhausted ON state (session) WHERE pause_reason = 'budget_exceeded';
CREATE TABLE account ( session INTEGER PRIMARY KEY, limits TEXT NOT NULL, spent TEXT NOT NULL, reserved TEXT NOT NULL, low INTEGER NOT NULL, checksum INTEGER NOT NULL );
CREATE TABLE hold ( session INTEGER NOT NULL, task INTEGER NOT NULL, amount TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (session, task) ) WITHOUT ROWID;
CREATE TABLE journal ( session INTEGER NOT NULL, seq INTEGER NOT NULL, count INTEGER NOT NULL, committed_at INTEGER NOT NULL, body TEXT NOT NULL, checkpoint INTEGER, checksum INTEGER NOT NULL, UNIQUE (session, seq) );
CREATE INDEX journal_checkpoint ON journal (session, seq) WHERE checkpoint = 1;
CREATE TABLE entry ( session INTEGER NOT NULL, seq INTEGER NOT NULL, idx INTEGER NOT NULL, parent INTEGER, role TEXT NOT NULL, turn INTEGER NOT NULL, content TEXT, blob TEXT, record INTEGER, created_at INTEGER NOT NULL, checksum INTEGER NOT NULL, UNIQUE (session, seq) );
CREATE TABLE signal ( session INTEGER NOT NULL, ord INTEGER NOT NULL, signal_id TEXT NOT NULL, name TEXT NOT NULL, payload TEXT, blob TEXT, sent_at INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (session, ord) ) WITHOUT ROWID;
CREATE TABLE seen (key TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (key, session)) WITHOUT ROWID;
CREATE TABLE schedule ( schedule_id TEXT PRIMARY KEY, cron TEXT NOT NULL, time_zone TEXT NOT NULL, action TEXT NOT NULL, next_at INTEGER NOT NULL, last_at INTEGER, created_at INTEGER NOT NULL, checksum INTEGER NOT NULL ) WITHOUT ROWID;
CREATE INDEX schedule_next ON schedule (next_at);
CREATE TABLE blob (address TEXT NOT NULL UNIQUE, content TEXT NOT NULL);
INSERT INTO meta VALUES ('token_block', 1);
INSERT INTO session VALUES (1, 'ses-ended', '{"name":"brief","version":"1"}', NULL, 'r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', 3823950413, 1, 1, NULL, NULL, 1795444630100, 1213163917);
INSERT INTO session VALUES (2, 'ses-question', '{"name":"asker","version":"1"}', NULL, NULL, 3216901475, 1, 1, NULL, NULL, 1795444630115, 3931243230);
INSERT INTO session VALUES (3, 'ses-timer', '{"name":"sleeper","version":"1"}', NULL, NULL, 1683772091, 1, 1, NULL, NULL, 1795444630116, 1796995753);
INSERT INTO session VALUES (4, 'ses-parent', '{"name":"parent","version":"1"}', NULL, NULL, 4164090607, 1, 1, NULL, NULL, 1795444630118, 1308732509);
INSERT INTO session VALUES (5, 'ses-parent-0', '{"name":"child","version":"1"}', NULL, NULL, 1711637342, 1, 1, 'ses-parent', '{"parent":{"sessionId":"ses-parent","child":0,"onEnd":"cancel"},"depth":1}', 1795444630118, 4208180827);
INSERT INTO session VALUES (6, 'ses-listening', '{"name":"listener","version":"1"}', NULL, NULL, 2822201759, 1, 1, NULL, '{"payers":["ses-listening"]}', 1795444630122, 3690084648);
INSERT INTO session VALUES (7, 'ses-signalled', '{"name":"listener","version":"1"}', NULL, NULL, 2405120108, 1, 1, NULL, NULL, 1795444630147, 2086521376);
INSERT INTO session VALUES (8, 'ses-queued', '{"name":"brief","version":"1"}', '"later"', NULL, 1, 1, 1, NULL, NULL, 1795444630170, 4234661069);
INSERT INTO session VALUES (9, 'ses-hold', '{"name":"spender","version":"1"}', NULL, NULL, 4032201516, 1, 1, NULL, '{"payers":["ses-hold"]}', 1795444630171, 3612019013);
INSERT INTO state VALUES (1, 'completed', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 6, 2, 0, 0, '{"length":65536,"output":"only done"}', NULL, NULL, NULL, 1795444630113, 1795444630113, 2933521700);
INSERT INTO state VALUES (2, 'input_required', NULL, '[{"type":"input","id":0,"name":"answer:0","prompt":"Deploy?","answer":"approval"}]', NULL, NULL, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795444630115, NULL, 631132319);
INSERT INTO state VALUES (3, 'waiting', NULL, '[{"type":"timer","id":0,"at":1795448230116}]', 1795448230116, 1795448230116, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795444630116, NULL, 4022259226);
INSERT INTO state VALUES (4, 'waiting', NULL, '[{"type":"signal","id":1,"name":"child-end:0"}]', NULL, NULL, NULL, NULL, NULL, 3, 0, 0, 0, NULL, NULL, NULL, '{"children":1}', 1795444630118, NULL, 982666185);
INSERT INTO state VALUES (5, 'waiting', NULL, '[{"type":"signal","id":0,"name":"finish"}]', NULL, NULL, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795444630122, NULL, 2987810315);
INSERT INTO state VALUES (6, 'waiting', NULL, '[{"type":"signal","id":2,"name":"go"}]', NULL, NULL, NULL, NULL, NULL, 5, 1, 0, 1, NULL, NULL, NULL, NULL, 1795444630146, NULL, 1916264064);
INSERT INTO state VALUES (7, 'waiting', NULL, '[{"type":"signal","id":2,"name":"go"}]', NULL, NULL, NULL, NULL, NULL, 5, 1, 0, 0, NULL, NULL, NULL, NULL, 1795444630148, NULL, 2814849445);
INSERT INTO state VALUES (8, 'submitted', NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1795444630170, NULL, 2574729286);
INSERT INTO state VALUES (9, 'working', NULL, NULL, NULL, 0, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795444630171, NULL, 2741991780);
INSERT INTO account VALUES (6, '{"maxTokens":1000}', '{"tokens":30,"costMicroUsd":0,"steps":1,"turns":0}', '{"tokens":0,"costMicroUsd":0,"steps":0,"turns":0}', 0, 2715283411);
INSERT INTO account VALUES (9, '{"maxTokens":1000}', '{"tokens":30,"costMicroUsd":0,"steps":2,"turns":0}', '{"tokens":100,"costMicroUsd":0,"steps":0,"turns":0}', 0, 1651253913);
INSERT INTO hold VALUES (9, 1, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 3066821756);
INSERT INTO journal VALUES (1, 0, 3, 1795444630100, '{"type":"started","at":1795444630097,"seq":0}
{"type":"append_entry","role":"user","hash":"k_JFUQfU3C5m48Xy4USAc5zMMH9-HYWm_fM0SBaVv5s","seq":1,"id":0}
{"type":"schedule_task","kind":"call","hash":"xnZ5s9ABJOwWdYhyGSmYLSERytBbE1L9uDMFjpVZoXU","seq":2,"id":1,"payload":"only"}', NULL, 3886384468);
INSERT INTO journal VALUES (1, 3, 3, 1795444630113, '{"type":"task_completed","task":1,"attempt":1,"at":1795444630109,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":3,"payload":"only done"}
{"type":"append_entry","role":"assistant","hash":"x-1uxIaVXU6VLhIZ35ps0FwU4TODgn2HOhwxc4LWa18","seq":4,"id":2}
{"type":"complete","seq":5,"id":3,"payload":{"length":65536,"output":"only done"}}', NULL, 3694186649);
INSERT INTO journal VALUES (2, 0, 2, 1795444630115, '{"type":"started","at":1795444630115,"seq":0}
{"type":"request_input","hash":"SdPoiKK0KkRqBTeK4pQMGrn6qi7cMcjQMYLwksyDNy8","seq":1,"id":0,"payload":{"prompt":"Deploy?","details":{"version":2},"answer":"approval"}}', NULL, 1672350794);
INSERT INTO journal VALUES (3, 0, 2, 1795444630116, '{"type":"started","at":1795444630116,"seq":0}
{"type":"start_timer","fireAt":1795448230116,"seq":1,"id":0}', NULL, 4937546);
INSERT INTO journal VALUES (4, 0, 3, 1795444630118, '{"type":"started","at":1795444630117,"seq":0}
{"type":"spawn_child","agent":"child","hash":"K3O35PAOhxxprOELJNMXr1ZV5V_i2y7EyxRtRY_Sjoo","seq":1,"id":0}
{"type":"wait_signal","name":"child-end:0","mode":"consume","seq":2,"id":1}', NULL, 4005063483);
INSERT INTO journal VALUES (6, 0, 2, 1795444630122, '{"type":"started","at":1795444630121,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', NULL, 3117522427);
INSERT INTO journal VALUES (5, 0, 2, 1795444630122, '{"type":"started","at":1795444630121,"seq":0}
{"type":"wait_signal","name":"finish","mode":"consume","seq":1,"id":0}', NULL, 863889576);
INSERT INTO journal VALUES (6, 2, 3, 1795444630146, '{"type":"task_completed","task":0,"attempt":1,"at":1795444630124,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', NULL, 1259314547);
INSERT INTO journal VALUES (7, 0, 2, 1795444630147, '{"type":"started","at":1795444630147,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', NULL, 2950276654);
INSERT INTO journal VALUES (7, 2, 3, 1795444630148, '{"type":"task_completed","task":0,"attempt":1,"at":1795444630148,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', NULL, 642696734);
INSERT INTO journal VALUES (9, 0, 2, 1795444630171, '{"type":"started","at":1795444630171,"seq":0}
{"type":"schedule_task","kind":"call","hash":"3l8sv0wQoNFG8qZxqsNj6GQP78RprUKsJTZPGeS8GU8","seq":1,"id":0,"payload":"first"}', NULL, 3451295887);
INSERT INTO journal VALUES (9, 2, 2, 1795444630172, '{"type":"task_completed","task":0,"attempt":1,"at":1795444630172,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"first done"}
{"type":"schedule_task","kind":"call","hash":"OORStWpj2bXzlzVMvSB7DlSO-OT0lymm9t2NappXqyM","seq":3,"id":1,"payload":"second"}', NULL, 985424424);
INSERT INTO entry VALUES (1, 0, 0, NULL, 'user', 0, '"begin"', NULL, NULL, 1795444630100, 1514769855);
INSERT INTO entry VALUES (1, 2, 1, 0, 'assistant', 0, '"only done"', NULL, NULL, 1795444630113, 1726565806);
INSERT INTO entry VALUES (6, 1, 0, NULL, 'user', 0, '"before done"', NULL, NULL, 1795444630146, 806130128);
INSERT INTO entry VALUES (7, 1, 0, NULL, 'user', 0, '"before done"', NULL, NULL, 1795444630148, 412376110);
INSERT INTO signal VALUES (6, 1, 'sig-later', 'later', '{"n":7}', NULL, 1795444630124, 3054605904);
INSERT INTO signal VALUES (7, 1, 'sig-go', 'go', '1', NULL, 1795444630169, 379562202);
INSERT INTO seen VALUES ('i:sig-go', 7);
INSERT INTO seen VALUES ('i:sig-later', 6);
INSERT INTO schedule VALUES ('nightly', '0 3 * * *', 'UTC', '{"type":"signal","sessionId":"ses-listening","name":"night"}', 1795489200000, NULL, 1795444630125, 2267848195);
INSERT INTO blob VALUES ('r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', '"' || replace(hex(zeroblob(65536)), '00', 'x') || '"');
PRAGMA user_version = 1;
PRAGMA application_id = 1215261796;
