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
INSERT INTO meta VALUES ('token_block', 2);
INSERT INTO session VALUES (1, 'ses-ended', '{"name":"brief","version":"1"}', NULL, 'r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', 833157721, 1, 1, NULL, NULL, 1795446349590, 2584132041);
INSERT INTO session VALUES (2, 'ses-question', '{"name":"asker","version":"1"}', NULL, NULL, 3697827177, 1, 1, NULL, NULL, 1795446349609, 12120049);
INSERT INTO session VALUES (3, 'ses-timer', '{"name":"sleeper","version":"1"}', NULL, NULL, 314479383, 1, 1, NULL, NULL, 1795446349611, 3027418266);
INSERT INTO session VALUES (4, 'ses-parent', '{"name":"parent","version":"1"}', NULL, NULL, 2843661108, 1, 1, NULL, NULL, 1795446349613, 1068331958);
INSERT INTO session VALUES (5, 'ses-parent-0', '{"name":"child","version":"1"}', NULL, NULL, 927574661, 1, 1, 'ses-parent', '{"parent":{"sessionId":"ses-parent","child":0,"onEnd":"cancel"},"depth":1}', 1795446349613, 1918434284);
INSERT INTO session VALUES (6, 'ses-listening', '{"name":"listener","version":"1"}', NULL, NULL, 1860637922, 1, 1, NULL, '{"payers":["ses-listening"]}', 1795446349624, 529371268);
INSERT INTO session VALUES (7, 'ses-signalled', '{"name":"listener","version":"1"}', NULL, NULL, 1162421426, 1, 1, NULL, NULL, 1795446349650, 529365771);
INSERT INTO session VALUES (8, 'ses-queued', '{"name":"brief","version":"1"}', '"later"', NULL, 1, 1, 1, NULL, NULL, 1795446349674, 97799011);
INSERT INTO session VALUES (9, 'ses-hold', '{"name":"spender","version":"1"}', NULL, NULL, 2180631255, 1, 1, NULL, '{"payers":["ses-hold"]}', 1795446349676, 4127811357);
INSERT INTO state VALUES (1, 'completed', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 6, 2, 0, 0, '{"length":65536,"output":"only done"}', NULL, NULL, NULL, 1795446349606, 1795446349606, 3474343974);
INSERT INTO state VALUES (2, 'input_required', NULL, '[{"type":"input","id":0,"name":"answer:0","prompt":"Deploy?","answer":"approval"}]', NULL, NULL, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795446349609, NULL, 1730456494);
INSERT INTO state VALUES (3, 'waiting', NULL, '[{"type":"timer","id":0,"at":1795449949611}]', 1795449949611, 1795449949611, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795446349611, NULL, 823808446);
INSERT INTO state VALUES (4, 'waiting', NULL, '[{"type":"signal","id":1,"name":"child-end:0"}]', NULL, NULL, NULL, NULL, NULL, 3, 0, 0, 0, NULL, NULL, NULL, '{"children":1}', 1795446349613, NULL, 1898286824);
INSERT INTO state VALUES (5, 'waiting', NULL, '[{"type":"signal","id":0,"name":"finish"}]', NULL, NULL, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795446349624, NULL, 2557934314);
INSERT INTO state VALUES (6, 'waiting', NULL, '[{"type":"signal","id":2,"name":"go"}]', NULL, NULL, NULL, NULL, NULL, 5, 1, 0, 1, NULL, NULL, NULL, NULL, 1795446349649, NULL, 3452911538);
INSERT INTO state VALUES (7, 'waiting', NULL, '[{"type":"signal","id":2,"name":"go"}]', NULL, NULL, NULL, NULL, NULL, 5, 1, 0, 0, NULL, NULL, NULL, NULL, 1795446349652, NULL, 2259550126);
INSERT INTO state VALUES (8, 'submitted', NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1795446349674, NULL, 612955534);
INSERT INTO state VALUES (9, 'working', NULL, NULL, NULL, 0, NULL, NULL, NULL, 2, 0, 0, 0, NULL, NULL, NULL, NULL, 1795446349676, NULL, 796448305);
INSERT INTO account VALUES (6, '{"maxTokens":5000}', '{"tokens":30,"costMicroUsd":0,"steps":1,"turns":0}', '{"tokens":0,"costMicroUsd":0,"steps":0,"turns":0}', 0, 1193717411);
INSERT INTO account VALUES (9, '{"maxTokens":5000}', '{"tokens":30,"costMicroUsd":0,"steps":13,"turns":0}', '{"tokens":1200,"costMicroUsd":0,"steps":0,"turns":0}', 0, 2107747199);
INSERT INTO hold VALUES (9, 1, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 3066821756);
INSERT INTO hold VALUES (9, 2, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 4242902146);
INSERT INTO hold VALUES (9, 3, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 1943052567);
INSERT INTO hold VALUES (9, 4, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 1756982654);
INSERT INTO hold VALUES (9, 5, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 3884728555);
INSERT INTO hold VALUES (9, 6, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 2913087509);
INSERT INTO hold VALUES (9, 7, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 580328832);
INSERT INTO hold VALUES (9, 8, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 2607917255);
INSERT INTO hold VALUES (9, 9, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 340034898);
INSERT INTO hold VALUES (9, 10, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 2638627024);
INSERT INTO hold VALUES (9, 11, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 309554501);
INSERT INTO hold VALUES (9, 12, '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', 1482497467);
INSERT INTO journal VALUES (1, 0, 3, 1795446349590, '{"type":"started","at":1795446349585,"seq":0}
{"type":"append_entry","role":"user","hash":"k_JFUQfU3C5m48Xy4USAc5zMMH9-HYWm_fM0SBaVv5s","seq":1,"id":0}
{"type":"schedule_task","kind":"call","hash":"xnZ5s9ABJOwWdYhyGSmYLSERytBbE1L9uDMFjpVZoXU","seq":2,"id":1,"payload":"only"}', NULL, 2135275918);
INSERT INTO journal VALUES (1, 3, 3, 1795446349606, '{"type":"task_completed","task":1,"attempt":1,"at":1795446349596,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":3,"payload":"only done"}
{"type":"append_entry","role":"assistant","hash":"x-1uxIaVXU6VLhIZ35ps0FwU4TODgn2HOhwxc4LWa18","seq":4,"id":2}
{"type":"complete","seq":5,"id":3,"payload":{"length":65536,"output":"only done"}}', NULL, 3960085238);
INSERT INTO journal VALUES (2, 0, 2, 1795446349609, '{"type":"started","at":1795446349609,"seq":0}
{"type":"request_input","hash":"SdPoiKK0KkRqBTeK4pQMGrn6qi7cMcjQMYLwksyDNy8","seq":1,"id":0,"payload":{"prompt":"Deploy?","details":{"version":2},"answer":"approval"}}', NULL, 2282805707);
INSERT INTO journal VALUES (3, 0, 2, 1795446349611, '{"type":"started","at":1795446349611,"seq":0}
{"type":"start_timer","fireAt":1795449949611,"seq":1,"id":0}', NULL, 2225317390);
INSERT INTO journal VALUES (4, 0, 3, 1795446349613, '{"type":"started","at":1795446349612,"seq":0}
{"type":"spawn_child","agent":"child","hash":"K3O35PAOhxxprOELJNMXr1ZV5V_i2y7EyxRtRY_Sjoo","seq":1,"id":0}
{"type":"wait_signal","name":"child-end:0","mode":"consume","seq":2,"id":1}', NULL, 4126787902);
INSERT INTO journal VALUES (6, 0, 2, 1795446349624, '{"type":"started","at":1795446349623,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', NULL, 723364811);
INSERT INTO journal VALUES (5, 0, 2, 1795446349624, '{"type":"started","at":1795446349624,"seq":0}
{"type":"wait_signal","name":"finish","mode":"consume","seq":1,"id":0}', NULL, 3491352301);
INSERT INTO journal VALUES (6, 2, 3, 1795446349649, '{"type":"task_completed","task":0,"attempt":1,"at":1795446349627,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', NULL, 3820401798);
INSERT INTO journal VALUES (7, 0, 2, 1795446349650, '{"type":"started","at":1795446349650,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', NULL, 383251987);
INSERT INTO journal VALUES (7, 2, 3, 1795446349652, '{"type":"task_completed","task":0,"attempt":1,"at":1795446349651,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', NULL, 3394297440);
INSERT INTO journal VALUES (9, 0, 2, 1795446349676, '{"type":"started","at":1795446349676,"seq":0}
{"type":"schedule_task","kind":"call","hash":"3l8sv0wQoNFG8qZxqsNj6GQP78RprUKsJTZPGeS8GU8","seq":1,"id":0,"payload":"first"}', NULL, 1182105915);
INSERT INTO journal VALUES (9, 2, 13, 1795446349678, '{"type":"task_completed","task":0,"attempt":1,"at":1795446349678,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"first done"}
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
{"type":"schedule_task","kind":"call","hash":"SSqtSUdrwFcp_rfgLd8VGD77QJuN5gemMfpZ4ml8wnY","seq":14,"id":12,"payload":"wide 11"}', NULL, 3321879040);
INSERT INTO entry VALUES (1, 0, 0, NULL, 'user', 0, '"begin"', NULL, NULL, 1795446349590, 3673316212);
INSERT INTO entry VALUES (1, 2, 1, 0, 'assistant', 0, '"only done"', NULL, NULL, 1795446349606, 2273546614);
INSERT INTO entry VALUES (6, 1, 0, NULL, 'user', 0, '"before done"', NULL, NULL, 1795446349649, 709611445);
INSERT INTO entry VALUES (7, 1, 0, NULL, 'user', 0, '"before done"', NULL, NULL, 1795446349652, 2120653881);
INSERT INTO signal VALUES (6, 1, 'sig-later', 'later', '{"n":7}', NULL, 1795446349627, 14911289);
INSERT INTO signal VALUES (7, 1, 'sig-go', 'go', '1', NULL, 1795446349673, 1886218445);
INSERT INTO seen VALUES ('i:sig-go', 7);
INSERT INTO seen VALUES ('i:sig-later', 6);
INSERT INTO schedule VALUES ('nightly', '0 3 * * *', 'UTC', '{"type":"signal","sessionId":"ses-listening","name":"night"}', 1795489200000, NULL, 1795446349628, 2942149348);
INSERT INTO blob VALUES ('r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', '"' || replace(hex(zeroblob(65536)), '00', 'x') || '"');
PRAGMA user_version = 1;
PRAGMA application_id = 1215261796;
