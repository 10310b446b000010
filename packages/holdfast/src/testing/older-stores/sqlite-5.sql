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
CREATE TABLE claim ( session INTEGER PRIMARY KEY, token INTEGER NOT NULL, owner TEXT, lease_ms INTEGER NOT NULL, losses INTEGER NOT NULL, checksum INTEGER NOT NULL );
CREATE TABLE document ( collection TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, version INTEGER NOT NULL, updated_at INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (collection, id) ) WITHOUT ROWID;
CREATE TABLE audit ( seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, object TEXT NOT NULL, request_id TEXT, outcome TEXT NOT NULL, hash TEXT NOT NULL, checksum INTEGER NOT NULL );
CREATE TABLE blob_use (address TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (address, session)) WITHOUT ROWID;
CREATE INDEX blob_use_session ON blob_use (session);
CREATE TABLE removed (session INTEGER PRIMARY KEY);
CREATE INDEX session_agent ON session (CASE WHEN json_valid(agent) THEN agent ->> '$.name' END);
CREATE INDEX state_status ON state (status);
CREATE INDEX session_owner ON session (CASE WHEN json_valid(origin) THEN origin ->> '$.placement.owner' END, session) WHERE CASE WHEN json_valid(origin) THEN origin ->> '$.placement.owner' END IS NOT NULL;
INSERT INTO meta VALUES ('token_block', 1);
INSERT INTO session VALUES (1, 'ses-ended', '{"name":"brief","version":"1"}', NULL, 'r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', 2237298938, 127, 1, NULL, NULL, 1795476050382, 1311506393);
INSERT INTO session VALUES (2, 'ses-question', '{"name":"asker","version":"1"}', NULL, NULL, 3906246136, 127, 1, NULL, NULL, 1795476050404, 3320489780);
INSERT INTO session VALUES (3, 'ses-timer', '{"name":"sleeper","version":"1"}', NULL, NULL, 1658241827, 127, 1, NULL, NULL, 1795476050408, 1676980866);
INSERT INTO session VALUES (4, 'ses-parent', '{"name":"parent","version":"1"}', NULL, NULL, 4201894508, 127, 1, NULL, NULL, 1795476050414, 4072444746);
INSERT INTO session VALUES (5, 'ses-parent-0', '{"name":"child","version":"1"}', NULL, NULL, 1682222045, 127, 1, 'ses-parent', '{"parent":{"sessionId":"ses-parent","child":0,"onEnd":"cancel"},"depth":1}', 1795476050414, 1459912539);
INSERT INTO session VALUES (6, 'ses-listening', '{"name":"listener","version":"1"}', NULL, NULL, 4023744126, 127, 1, NULL, '{"payers":["ses-listening"]}', 1795476050422, 2278897495);
INSERT INTO session VALUES (7, 'ses-signalled', '{"name":"listener","version":"1"}', NULL, NULL, 3646875007, 127, 1, NULL, NULL, 1795476050462, 3853612838);
INSERT INTO session VALUES (8, 'ses-queued', '{"name":"brief","version":"1"}', '"later"', NULL, 1, 127, 1, NULL, NULL, 1795476050488, 3307718515);
INSERT INTO session VALUES (9, 'ses-leased', '{"name":"brief","version":"1"}', '"later"', NULL, 1, 127, 1, NULL, NULL, 1795476050496, 369818301);
INSERT INTO session VALUES (11, 'ses-hold', '{"name":"spender","version":"1"}', NULL, NULL, 4173732377, 127, 1, NULL, '{"payers":["ses-hold"]}', 1795476050509, 2080381414);
INSERT INTO state VALUES (1, 'completed', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 6, 2, 0, 0, '{"length":65536,"output":"only done"}', NULL, NULL, NULL, 1795476050395, 1795476050395, 138808153);
INSERT INTO state VALUES (2, 'input_required', NULL, '[{"type":"input","id":0,"name":"answer:0","prompt":"Deploy?","answer":"approval"}]', NULL, NULL, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795476050404, NULL, 509731273);
INSERT INTO state VALUES (3, 'waiting', NULL, '[{"type":"timer","id":0,"at":1795479650407}]', 1795479650407, 1795479650407, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795476050408, NULL, 1556229740);
INSERT INTO state VALUES (4, 'waiting', NULL, '[{"type":"signal","id":1,"name":"child-end:0"}]', NULL, NULL, NULL, NULL, NULL, 3, 0, 0, 0, NULL, NULL, NULL, '{"children":1}', 1795476050414, NULL, 2886769601);
INSERT INTO state VALUES (5, 'waiting', NULL, '[{"type":"signal","id":0,"name":"finish"}]', NULL, NULL, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795476050422, NULL, 3811894391);
INSERT INTO state VALUES (6, 'waiting', NULL, '[{"type":"signal","id":2,"name":"go"}]', NULL, NULL, NULL, NULL, NULL, 5, 1, 0, 1, NULL, NULL, NULL, NULL, 1795476050455, NULL, 3730276095);
INSERT INTO state VALUES (7, 'waiting', NULL, '[{"type":"signal","id":2,"name":"go"}]', NULL, NULL, NULL, NULL, NULL, 5, 1, 0, 0, NULL, NULL, NULL, NULL, 1795476050464, NULL, 1935730384);
INSERT INTO state VALUES (8, 'submitted', NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1795476050488, NULL, 580560625);
INSERT INTO state VALUES (9, 'submitted', NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1795476050496, NULL, 4022454059);
INSERT INTO state VALUES (11, 'working', NULL, NULL, NULL, 0, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795476050509, NULL, 708361667);
INSERT INTO account VALUES (6, '{"maxTokens":5000}', '{"tokens":30,"costMicroUsd":0,"steps":1,"turns":0}', '{"tokens":0,"costMicroUsd":0,"steps":0,"turns":0}', 0, 1193717411);
INSERT INTO account VALUES (11, '{"maxTokens":5000}', '{"tokens":30,"costMicroUsd":0,"steps":13,"turns":0}', '{"tokens":1200,"costMicroUsd":0,"steps":0,"turns":0,"holds":[{"task":1,"amount":{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}},{"task":2,"amount":{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}},{"task":3,"amount":{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}},{"task":4,"amount":{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}},{"task":5,"amount":{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}},{"task":6,"amount":{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}},{"task":7,"amount":{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}},{"task":8,"amount":{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}}]}', 0, 2800838734);
INSERT INTO hold VALUES (11, 9, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 2192902244);
INSERT INTO hold VALUES (11, 10, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 1382687940);
INSERT INTO hold VALUES (11, 11, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 3713993041);
INSERT INTO hold VALUES (11, 12, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 2540796335);
INSERT INTO journal VALUES (1, 0, 3, 1795476050382, '{"type":"started","at":1795476050379,"seq":0}
{"type":"append_entry","role":"user","hash":"k_JFUQfU3C5m48Xy4USAc5zMMH9-HYWm_fM0SBaVv5s","seq":1,"id":0}
{"type":"schedule_task","kind":"call","hash":"xnZ5s9ABJOwWdYhyGSmYLSERytBbE1L9uDMFjpVZoXU","seq":2,"id":1,"payload":"only"}', NULL, 746863181);
INSERT INTO journal VALUES (1, 3, 3, 1795476050395, '{"type":"task_completed","task":1,"attempt":1,"at":1795476050393,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":3,"payload":"only done"}
{"type":"append_entry","role":"assistant","hash":"x-1uxIaVXU6VLhIZ35ps0FwU4TODgn2HOhwxc4LWa18","seq":4,"id":2}
{"type":"complete","seq":5,"id":3,"payload":{"length":65536,"output":"only done"}}', NULL, 3835622518);
INSERT INTO journal VALUES (2, 0, 2, 1795476050404, '{"type":"started","at":1795476050400,"seq":0}
{"type":"request_input","hash":"SdPoiKK0KkRqBTeK4pQMGrn6qi7cMcjQMYLwksyDNy8","seq":1,"id":0,"payload":{"prompt":"Deploy?","details":{"version":2},"answer":"approval"}}', NULL, 2526364458);
INSERT INTO journal VALUES (3, 0, 2, 1795476050408, '{"type":"started","at":1795476050407,"seq":0}
{"type":"start_timer","fireAt":1795479650407,"seq":1,"id":0}', NULL, 3383961559);
INSERT INTO journal VALUES (4, 0, 3, 1795476050414, '{"type":"started","at":1795476050411,"seq":0}
{"type":"spawn_child","agent":"child","hash":"K3O35PAOhxxprOELJNMXr1ZV5V_i2y7EyxRtRY_Sjoo","seq":1,"id":0}
{"type":"wait_signal","name":"child-end:0","mode":"consume","seq":2,"id":1}', NULL, 4177323272);
INSERT INTO journal VALUES (6, 0, 2, 1795476050422, '{"type":"started","at":1795476050421,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', NULL, 1989930886);
INSERT INTO journal VALUES (5, 0, 2, 1795476050422, '{"type":"started","at":1795476050421,"seq":0}
{"type":"wait_signal","name":"finish","mode":"consume","seq":1,"id":0}', NULL, 1750657017);
INSERT INTO journal VALUES (6, 2, 3, 1795476050455, '{"type":"task_completed","task":0,"attempt":1,"at":1795476050425,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', NULL, 1646647090);
INSERT INTO journal VALUES (7, 0, 2, 1795476050462, '{"type":"started","at":1795476050461,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', NULL, 1167740626);
INSERT INTO journal VALUES (7, 2, 3, 1795476050464, '{"type":"task_completed","task":0,"attempt":1,"at":1795476050463,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', NULL, 3492763780);
INSERT INTO journal VALUES (11, 0, 2, 1795476050509, '{"type":"started","at":1795476050509,"seq":0}
{"type":"schedule_task","kind":"call","hash":"3l8sv0wQoNFG8qZxqsNj6GQP78RprUKsJTZPGeS8GU8","seq":1,"id":0,"payload":"first"}', NULL, 2940115191);
INSERT INTO journal VALUES (11, 2, 13, 1795476050511, '{"type":"task_completed","task":0,"attempt":1,"at":1795476050510,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"first done"}
{"type":"schedule_task","kind":"call","hash":"_6mGNtHvBbfW33RvX7tFLx-TvVfFB51ygfOtc-tJ9kU","seq":3,"id":1,"payload":"wide 0"}
{"type":"schedule_task","kind":"call","hash":"DsEgq7otdz0s8wXMRVeE6lpO3pC1GX52EKQdfLm0_7g","seq":4,"id":2,"payload":"wide 1"}
{"type":"schedule_task","kind":"call","hash":"m7BaiexLoh6zF5ursb12kDHkO7bfyCkp81lAKzgyE5I","seq":5,"id":3,"payload":"wide 2"}
{"type":"schedule_task","kind":"call","hash":"G_eXdGfTP4Kb_h23w-4ZzkjSsZON-MYZ0TxBs6n3aOs","seq":6,"id":4,"payload":"wide 3"}
{"type":"schedule_task","kind":"call","hash":"S_5KYNRW0VcU3ZVzNL0qTQsbSLz54aqGGFdVDRwUsHs","seq":7,"id":5,"payload":"wide 4"}
{"type":"schedule_task","kind":"call","hash":"7jdzAdS9d2ir2fkdI_ooYrnNj3_GbWUB6rg10_Plz3c","seq":8,"id":6,"payload":"wide 5"}
{"type":"schedule_task","kind":"call","hash":"OW7XWViEYXTavxkTGTJJt7zVdLqGJcnSotJTsnJLujk","seq":9,"id":7,"payload":"wide 6"}
{"type":"schedule_task","kind":"call","hash":"x7nsy0f4GPtAhgFfun5u98IagOW9xqj8hm8KCQH3Sjk","seq":10,"id":8,"payload":"wide 7"}
{"type":"schedule_task","kind":"call","hash":"KDtbhWPyy6tPWjG32Ule97xae5sXCLTq36v5SxI1gaU","seq":11,"id":9,"payload":"wide 8"}
{"type":"schedule_task","kind":"call","hash":"butIXg3DQgaXZ-ezJz5CrQLXhQU68mWHEfBNN-NVwBo","seq":12,"id":10,"payload":"wide 9"}
{"type":"schedule_task","kind":"call","hash":"w-50Df82biw8QkHfH_XVtHU5PRLETYu52CEtyQopWKo","seq":13,"id":11,"payload":"wide 10"}
{"type":"schedule_task","kind":"call","hash":"SSqtSUdrwFcp_rfgLd8VGD77QJuN5gemMfpZ4ml8wnY","seq":14,"id":12,"payload":"wide 11"}', NULL, 966004696);
INSERT INTO entry VALUES (1, 0, 0, NULL, 'user', 0, '"begin"', NULL, NULL, 1795476050382, 38050705);
INSERT INTO entry VALUES (1, 2, 1, 0, 'assistant', 0, '"only done"', NULL, NULL, 1795476050395, 1518902916);
INSERT INTO entry VALUES (6, 1, 0, NULL, 'user', 0, '"before done"', NULL, NULL, 1795476050455, 3810309513);
INSERT INTO entry VALUES (7, 1, 0, NULL, 'user', 0, '"before done"', NULL, NULL, 1795476050464, 1314577121);
INSERT INTO signal VALUES (6, 1, 'sig-later', 'later', '{"n":7}', NULL, 1795476050425, 1458944700);
INSERT INTO signal VALUES (7, 1, 'sig-go', 'go', '1', NULL, 1795476050486, 1650885810);
INSERT INTO seen VALUES ('i:sig-go', 7);
INSERT INTO seen VALUES ('i:sig-later', 6);
INSERT INTO schedule VALUES ('nightly', '0 3 * * *', 'UTC', '{"type":"signal","sessionId":"ses-listening","name":"night"}', 1795489200000, NULL, 1795476050427, 1290133804);
INSERT INTO blob VALUES ('r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', '"' || replace(hex(zeroblob(65536)), '00', 'x') || '"');
INSERT INTO claim VALUES (9, 1048583, 'runner', 60000, 0, 2844597540);
INSERT INTO document VALUES ('notes', 'note-1', '{"text":"kept"}', 1, 1795476050496, 2561422733);
INSERT INTO audit VALUES (1, 1795476050496, 'anna', 'start', 'ses-leased', NULL, 'created', 'MwfxZ7huEHe7LtOcCe-baODmmhDFXxaVUdQofTKrjeA', 1641371684);
INSERT INTO blob_use VALUES ('r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', 1);
INSERT INTO removed VALUES (10);
PRAGMA user_version = 5;
PRAGMA application_id = 1215261796;
