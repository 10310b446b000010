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
CREATE INDEX session_owner ON session (origin ->> '$.placement.owner', session) WHERE origin ->> '$.placement.owner' IS NOT NULL;
CREATE TABLE claim ( session INTEGER PRIMARY KEY, token INTEGER NOT NULL, owner TEXT, lease_ms INTEGER NOT NULL, losses INTEGER NOT NULL, checksum INTEGER NOT NULL );
CREATE TABLE document ( collection TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, version INTEGER NOT NULL, updated_at INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (collection, id) ) WITHOUT ROWID;
CREATE TABLE audit ( seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, object TEXT NOT NULL, request_id TEXT, outcome TEXT NOT NULL, hash TEXT NOT NULL, checksum INTEGER NOT NULL );
CREATE TABLE blob_use (address TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (address, session)) WITHOUT ROWID;
CREATE INDEX blob_use_session ON blob_use (session);
CREATE TABLE removed (session INTEGER PRIMARY KEY);
CREATE INDEX session_agent ON session (CASE WHEN json_valid(agent) THEN agent ->> '$.name' END);
CREATE INDEX state_status ON state (status);
INSERT INTO meta VALUES ('token_block', 1);
INSERT INTO session VALUES (1, 'ses-ended', '{"name":"brief","version":"1"}', NULL, 'r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', 1521820065, 15, 1, NULL, NULL, 1795445075567, 1393906937);
INSERT INTO session VALUES (2, 'ses-question', '{"name":"asker","version":"1"}', NULL, NULL, 2874553038, 15, 1, NULL, NULL, 1795445075579, 2122378854);
INSERT INTO session VALUES (3, 'ses-timer', '{"name":"sleeper","version":"1"}', NULL, NULL, 3650777786, 15, 1, NULL, NULL, 1795445075585, 2148518712);
INSERT INTO session VALUES (4, 'ses-parent', '{"name":"parent","version":"1"}', NULL, NULL, 1228388630, 15, 1, NULL, NULL, 1795445075588, 614437296);
INSERT INTO session VALUES (5, 'ses-parent-0', '{"name":"child","version":"1"}', NULL, NULL, 3607150759, 15, 1, 'ses-parent', '{"parent":{"sessionId":"ses-parent","child":0,"onEnd":"cancel"},"depth":1}', 1795445075588, 1687634809);
INSERT INTO session VALUES (6, 'ses-listening', '{"name":"listener","version":"1"}', NULL, NULL, 842230126, 15, 1, NULL, '{"payers":["ses-listening"]}', 1795445075593, 1915283618);
INSERT INTO session VALUES (7, 'ses-signalled', '{"name":"listener","version":"1"}', NULL, NULL, 1297598613, 15, 1, NULL, NULL, 1795445075621, 769866825);
INSERT INTO session VALUES (8, 'ses-queued', '{"name":"brief","version":"1"}', '"later"', NULL, 1, 15, 1, NULL, NULL, 1795445075648, 341542620);
INSERT INTO session VALUES (9, 'ses-hold', '{"name":"spender","version":"1"}', NULL, NULL, 1916014041, 15, 1, NULL, '{"payers":["ses-hold"]}', 1795445075649, 3063673643);
INSERT INTO state VALUES (1, 'completed', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 6, 2, 0, 0, '{"length":65536,"output":"only done"}', NULL, NULL, NULL, 1795445075575, 1795445075575, 3776464778);
INSERT INTO state VALUES (2, 'input_required', NULL, '[{"type":"input","id":0,"name":"answer:0","prompt":"Deploy?","answer":"approval"}]', NULL, NULL, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795445075579, NULL, 501655235);
INSERT INTO state VALUES (3, 'waiting', NULL, '[{"type":"timer","id":0,"at":1795448675584}]', 1795448675584, 1795448675584, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795445075585, NULL, 1665311407);
INSERT INTO state VALUES (4, 'waiting', NULL, '[{"type":"signal","id":1,"name":"child-end:0"}]', NULL, NULL, NULL, NULL, NULL, 3, 0, 0, 0, NULL, NULL, NULL, '{"children":1}', 1795445075588, NULL, 476759373);
INSERT INTO state VALUES (5, 'waiting', NULL, '[{"type":"signal","id":0,"name":"finish"}]', NULL, NULL, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795445075593, NULL, 1891425350);
INSERT INTO state VALUES (6, 'waiting', NULL, '[{"type":"signal","id":2,"name":"go"}]', NULL, NULL, NULL, NULL, NULL, 5, 1, 0, 1, NULL, NULL, NULL, NULL, 1795445075620, NULL, 3618786135);
INSERT INTO state VALUES (7, 'waiting', NULL, '[{"type":"signal","id":2,"name":"go"}]', NULL, NULL, NULL, NULL, NULL, 5, 1, 0, 0, NULL, NULL, NULL, NULL, 1795445075623, NULL, 1670759858);
INSERT INTO state VALUES (8, 'submitted', NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1795445075648, NULL, 606970024);
INSERT INTO state VALUES (9, 'working', NULL, NULL, NULL, 0, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795445075649, NULL, 506829194);
INSERT INTO account VALUES (6, '{"maxTokens":1000}', '{"tokens":30,"costMicroUsd":0,"steps":1,"turns":0}', '{"tokens":0,"costMicroUsd":0,"steps":0,"turns":0}', 0, 2715283411);
INSERT INTO account VALUES (9, '{"maxTokens":1000}', '{"tokens":30,"costMicroUsd":0,"steps":2,"turns":0}', '{"tokens":100,"costMicroUsd":0,"steps":0,"turns":0}', 0, 1651253913);
INSERT INTO hold VALUES (9, 1, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 3066821756);
INSERT INTO journal VALUES (1, 0, 3, 1795445075567, '{"type":"started","at":1795445075563,"seq":0}
{"type":"append_entry","role":"user","hash":"k_JFUQfU3C5m48Xy4USAc5zMMH9-HYWm_fM0SBaVv5s","seq":1,"id":0}
{"type":"schedule_task","kind":"call","hash":"xnZ5s9ABJOwWdYhyGSmYLSERytBbE1L9uDMFjpVZoXU","seq":2,"id":1,"payload":"only"}', NULL, 944415235);
INSERT INTO journal VALUES (1, 3, 3, 1795445075575, '{"type":"task_completed","task":1,"attempt":1,"at":1795445075574,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":3,"payload":"only done"}
{"type":"append_entry","role":"assistant","hash":"x-1uxIaVXU6VLhIZ35ps0FwU4TODgn2HOhwxc4LWa18","seq":4,"id":2}
{"type":"complete","seq":5,"id":3,"payload":{"length":65536,"output":"only done"}}', NULL, 1518801495);
INSERT INTO journal VALUES (2, 0, 2, 1795445075579, '{"type":"started","at":1795445075578,"seq":0}
{"type":"request_input","hash":"SdPoiKK0KkRqBTeK4pQMGrn6qi7cMcjQMYLwksyDNy8","seq":1,"id":0,"payload":{"prompt":"Deploy?","details":{"version":2},"answer":"approval"}}', NULL, 804053250);
INSERT INTO journal VALUES (3, 0, 2, 1795445075585, '{"type":"started","at":1795445075584,"seq":0}
{"type":"start_timer","fireAt":1795448675584,"seq":1,"id":0}', NULL, 1289925543);
INSERT INTO journal VALUES (4, 0, 3, 1795445075588, '{"type":"started","at":1795445075587,"seq":0}
{"type":"spawn_child","agent":"child","hash":"K3O35PAOhxxprOELJNMXr1ZV5V_i2y7EyxRtRY_Sjoo","seq":1,"id":0}
{"type":"wait_signal","name":"child-end:0","mode":"consume","seq":2,"id":1}', NULL, 465783990);
INSERT INTO journal VALUES (6, 0, 2, 1795445075593, '{"type":"started","at":1795445075592,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', NULL, 898621306);
INSERT INTO journal VALUES (5, 0, 2, 1795445075593, '{"type":"started","at":1795445075592,"seq":0}
{"type":"wait_signal","name":"finish","mode":"consume","seq":1,"id":0}', NULL, 2158664460);
INSERT INTO journal VALUES (6, 2, 3, 1795445075620, '{"type":"task_completed","task":0,"attempt":1,"at":1795445075596,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', NULL, 2704930751);
INSERT INTO journal VALUES (7, 0, 2, 1795445075621, '{"type":"started","at":1795445075621,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', NULL, 247775622);
INSERT INTO journal VALUES (7, 2, 3, 1795445075623, '{"type":"task_completed","task":0,"attempt":1,"at":1795445075623,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', NULL, 4278738881);
INSERT INTO journal VALUES (9, 0, 2, 1795445075649, '{"type":"started","at":1795445075649,"seq":0}
{"type":"schedule_task","kind":"call","hash":"3l8sv0wQoNFG8qZxqsNj6GQP78RprUKsJTZPGeS8GU8","seq":1,"id":0,"payload":"first"}', NULL, 3403771235);
INSERT INTO journal VALUES (9, 2, 2, 1795445075651, '{"type":"task_completed","task":0,"attempt":1,"at":1795445075651,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"first done"}
{"type":"schedule_task","kind":"call","hash":"OORStWpj2bXzlzVMvSB7DlSO-OT0lymm9t2NappXqyM","seq":3,"id":1,"payload":"second"}', NULL, 51035732);
INSERT INTO entry VALUES (1, 0, 0, NULL, 'user', 0, '"begin"', NULL, NULL, 1795445075567, 1659635807);
INSERT INTO entry VALUES (1, 2, 1, 0, 'assistant', 0, '"only done"', NULL, NULL, 1795445075575, 1196947727);
INSERT INTO entry VALUES (6, 1, 0, NULL, 'user', 0, '"before done"', NULL, NULL, 1795445075620, 50825887);
INSERT INTO entry VALUES (7, 1, 0, NULL, 'user', 0, '"before done"', NULL, NULL, 1795445075623, 2654026028);
INSERT INTO signal VALUES (6, 1, 'sig-later', 'later', '{"n":7}', NULL, 1795445075596, 4212880550);
INSERT INTO signal VALUES (7, 1, 'sig-go', 'go', '1', NULL, 1795445075646, 4083130368);
INSERT INTO seen VALUES ('i:sig-go', 7);
INSERT INTO seen VALUES ('i:sig-later', 6);
INSERT INTO schedule VALUES ('nightly', '0 3 * * *', 'UTC', '{"type":"signal","sessionId":"ses-listening","name":"night"}', 1795489200000, NULL, 1795445075597, 3391519989);
INSERT INTO blob VALUES ('r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', '"' || replace(hex(zeroblob(65536)), '00', 'x') || '"');
INSERT INTO blob_use VALUES ('r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', 1);
PRAGMA user_version = 3;
PRAGMA application_id = 1215261796;
