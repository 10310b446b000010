CREATE TABLE meta (key text NOT NULL, value text NOT NULL);
CREATE TABLE session (session_id text COLLATE "C" NOT NULL, lane integer NOT NULL, born bigint NOT NULL, agent text COLLATE "C" NOT NULL, owner text COLLATE "C", parent text COLLATE "C", made text NOT NULL, checksum bigint NOT NULL);
CREATE TABLE state (lane integer NOT NULL, session_id text COLLATE "C" NOT NULL, version bigint NOT NULL, status text NOT NULL, ended integer NOT NULL, agent text COLLATE "C" NOT NULL, body text NOT NULL, checksum bigint NOT NULL, ready_at double precision, due_at double precision, overdue_at double precision, exhausted text COLLATE "C", token bigint NOT NULL, holder text COLLATE "C", until double precision NOT NULL, lease_ms double precision NOT NULL, losses integer NOT NULL, instance text COLLATE "C") WITH (fillfactor=70);
CREATE TABLE journal (lane integer NOT NULL, session_id text COLLATE "C" NOT NULL, seq bigint NOT NULL, count integer NOT NULL, committed_at double precision NOT NULL, checkpoint integer, body text NOT NULL, checksum bigint NOT NULL);
CREATE TABLE entry (lane integer NOT NULL, session_id text COLLATE "C" NOT NULL, seq bigint NOT NULL, body text NOT NULL, content text, blob text, checksum bigint NOT NULL);
CREATE TABLE signal (lane integer NOT NULL, session_id text COLLATE "C" NOT NULL, ord bigint NOT NULL, signal_id text NOT NULL, name text NOT NULL, sent_at double precision NOT NULL, payload text, blob text, checksum bigint NOT NULL);
CREATE TABLE seen (lane integer NOT NULL, session_id text COLLATE "C" NOT NULL, mark text COLLATE "C" NOT NULL);
CREATE TABLE hold (lane integer NOT NULL, session_id text COLLATE "C" NOT NULL, task bigint NOT NULL, amount text NOT NULL, checksum bigint NOT NULL);
CREATE TABLE blob (lane integer NOT NULL, session_id text COLLATE "C" NOT NULL, address text COLLATE "C" NOT NULL, content text NOT NULL);
CREATE TABLE item (kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL, next_at double precision, body text NOT NULL, checksum bigint NOT NULL);
CREATE TABLE audit (seq bigint NOT NULL, body text NOT NULL, checksum bigint NOT NULL);
CREATE TABLE instance (instance text COLLATE "C" NOT NULL, said_at timestamp with time zone NOT NULL);
ALTER TABLE meta ADD PRIMARY KEY (key);
ALTER TABLE session ADD PRIMARY KEY (session_id);
ALTER TABLE state ADD PRIMARY KEY (lane, session_id);
ALTER TABLE journal ADD PRIMARY KEY (lane, session_id, seq);
ALTER TABLE entry ADD PRIMARY KEY (lane, session_id, seq);
ALTER TABLE signal ADD PRIMARY KEY (lane, session_id, ord);
ALTER TABLE seen ADD PRIMARY KEY (lane, session_id, mark);
ALTER TABLE hold ADD PRIMARY KEY (lane, session_id, task);
ALTER TABLE blob ADD PRIMARY KEY (lane, session_id, address);
ALTER TABLE item ADD PRIMARY KEY (kind, key);
ALTER TABLE audit ADD PRIMARY KEY (seq);
ALTER TABLE instance ADD PRIMARY KEY (instance);
CREATE INDEX session_born ON session USING btree (born, session_id);
CREATE INDEX session_parent ON session USING btree (parent, born) WHERE (parent IS NOT NULL);
CREATE INDEX session_owner ON session USING btree (owner, born) WHERE (owner IS NOT NULL);
CREATE INDEX state_due ON state USING btree (due_at, lane, session_id) WHERE (due_at IS NOT NULL);
CREATE INDEX state_overdue ON state USING btree (overdue_at) WHERE (overdue_at IS NOT NULL);
CREATE INDEX state_exhausted ON state USING btree (exhausted) WHERE (exhausted IS NOT NULL);
CREATE INDEX state_holder ON state USING btree (holder) WHERE ((holder IS NOT NULL) AND (ended = 0));
CREATE INDEX state_instance ON state USING btree (instance) WHERE (instance IS NOT NULL);
CREATE INDEX journal_checkpoint ON journal USING btree (lane, session_id, seq) WHERE (checkpoint = 1);
CREATE INDEX item_next ON item USING btree (next_at) WHERE (next_at IS NOT NULL);
INSERT INTO meta VALUES ('lanes', '8');
INSERT INTO meta VALUES ('schema_version', '1');
INSERT INTO session VALUES ('ses-ended', '5', '1795444633657725', 'brief', NULL, NULL, '{"agent":{"name":"brief","version":"1"},"seed":3090698282,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795444633653,"inputBlob":"r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8"}', '2702901587');
INSERT INTO session VALUES ('ses-hold', '1', '1795444633804652', 'spender', NULL, NULL, '{"agent":{"name":"spender","version":"1"},"seed":3957299582,"flags":7,"format":1,"depth":0,"payers":["ses-hold"],"createdAt":1795444633804}', '2916050246');
INSERT INTO session VALUES ('ses-listening', '3', '1795444633703857', 'listener', NULL, NULL, '{"agent":{"name":"listener","version":"1"},"seed":593750732,"flags":7,"format":1,"depth":0,"payers":["ses-listening"],"createdAt":1795444633703}', '1262476316');
INSERT INTO session VALUES ('ses-parent', '5', '1795444633696076', 'parent', NULL, NULL, '{"agent":{"name":"parent","version":"1"},"seed":3954911921,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795444633692}', '379789739');
INSERT INTO session VALUES ('ses-parent-0', '5', '1795444633696385', 'child', NULL, 'ses-parent', '{"agent":{"name":"child","version":"1"},"seed":1972130560,"flags":7,"format":1,"parent":{"sessionId":"ses-parent","child":0,"onEnd":"cancel"},"depth":1,"payers":[],"createdAt":1795444633692}', '2569720266');
INSERT INTO session VALUES ('ses-question', '1', '1795444633683871', 'asker', NULL, NULL, '{"agent":{"name":"asker","version":"1"},"seed":3239127000,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795444633683}', '1423001861');
INSERT INTO session VALUES ('ses-queued', '3', '1795444633802360', 'brief', NULL, NULL, E'{"agent":{"name":"brief","version":"1"},"seed":1,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795444633802,"input":"\\"later\\""}', '209113528');
INSERT INTO session VALUES ('ses-signalled', '2', '1795444633761992', 'listener', NULL, NULL, '{"agent":{"name":"listener","version":"1"},"seed":1366914817,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795444633761}', '303767684');
INSERT INTO session VALUES ('ses-timer', '0', '1795444633687919', 'sleeper', NULL, NULL, '{"agent":{"name":"sleeper","version":"1"},"seed":3162160177,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795444633687}', '1847795043');
INSERT INTO state VALUES ('0', 'ses-timer', '1795444633687919', 'waiting', '0', 'sleeper', '{"status":"waiting","waits":[{"type":"timer","id":0,"at":1795448233687}],"wakeAt":1795448233687,"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795444633687}', '3693979034', '1795448233687', NULL, NULL, NULL, '1795444633687944', 'maker', 'Infinity', 'Infinity', '0', '91ff2504-dd09-474f-a6bd-9d72a01783c5');
INSERT INTO state VALUES ('1', 'ses-hold', '1795444633804653', 'working', '0', 'spender', '{"status":"working","waits":[],"nextSeq":4,"entryCount":0,"turn":0,"inbox":0,"children":0,"account":{"limits":{"maxTokens":1000},"spent":{"tokens":30,"costMicroUsd":0,"steps":2,"turns":0},"reserved":{"tokens":100,"costMicroUsd":0,"steps":0,"turns":0},"low":false},"updatedAt":1795444633809}', '3376502297', '-Infinity', NULL, NULL, NULL, '1795444633804677', 'maker', 'Infinity', 'Infinity', '0', '91ff2504-dd09-474f-a6bd-9d72a01783c5');
INSERT INTO state VALUES ('1', 'ses-question', '1795444633683871', 'input_required', '0', 'asker', '{"status":"input_required","waits":[{"type":"input","id":0,"name":"answer:0","prompt":"Deploy?","answer":"approval"}],"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795444633683}', '2534870853', NULL, NULL, NULL, NULL, '1795444633683903', 'maker', 'Infinity', 'Infinity', '0', '91ff2504-dd09-474f-a6bd-9d72a01783c5');
INSERT INTO state VALUES ('2', 'ses-signalled', '1795444633761995', 'waiting', '0', 'listener', '{"status":"waiting","waits":[{"type":"signal","id":2,"name":"go"}],"nextSeq":5,"entryCount":1,"turn":0,"inbox":1,"children":0,"updatedAt":1795444633794}', '1735591725', '-Infinity', '-Infinity', NULL, NULL, '1795444633762016', NULL, '-Infinity', 'Infinity', '0', NULL);
INSERT INTO state VALUES ('3', 'ses-listening', '1795444633703859', 'waiting', '0', 'listener', '{"status":"waiting","waits":[{"type":"signal","id":2,"name":"go"}],"nextSeq":5,"entryCount":1,"turn":0,"inbox":1,"children":0,"account":{"limits":{"maxTokens":1000},"spent":{"tokens":30,"costMicroUsd":0,"steps":1,"turns":0},"reserved":{"tokens":0,"costMicroUsd":0,"steps":0,"turns":0},"low":false},"updatedAt":1795444633723}', '925899027', NULL, NULL, NULL, NULL, '1795444633703883', 'maker', 'Infinity', 'Infinity', '0', '91ff2504-dd09-474f-a6bd-9d72a01783c5');
INSERT INTO state VALUES ('3', 'ses-queued', '1795444633802360', 'submitted', '0', 'brief', '{"status":"submitted","waits":[],"nextSeq":0,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795444633802}', '1644170860', '-Infinity', '-Infinity', NULL, NULL, '0', NULL, '-Infinity', '0', '0', NULL);
INSERT INTO state VALUES ('5', 'ses-ended', '1795444633657726', 'completed', '1', 'brief', E'{"status":"completed","waits":[],"nextSeq":6,"entryCount":2,"turn":0,"inbox":0,"output":"{\\"length\\":65536,\\"output\\":\\"only done\\"}","children":0,"updatedAt":1795444633676,"endedAt":1795444633676}', '4028316731', NULL, NULL, NULL, NULL, '1795444633657829', 'maker', 'Infinity', 'Infinity', '0', NULL);
INSERT INTO state VALUES ('5', 'ses-parent', '1795444633696076', 'waiting', '0', 'parent', '{"status":"waiting","waits":[{"type":"signal","id":1,"name":"child-end:0"}],"nextSeq":3,"entryCount":0,"turn":0,"inbox":0,"children":1,"updatedAt":1795444633692}', '996181065', NULL, NULL, NULL, NULL, '1795444633696107', 'maker', 'Infinity', 'Infinity', '0', '91ff2504-dd09-474f-a6bd-9d72a01783c5');
INSERT INTO state VALUES ('5', 'ses-parent-0', '1795444633696387', 'waiting', '0', 'child', '{"status":"waiting","waits":[{"type":"signal","id":0,"name":"finish"}],"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795444633720}', '4069983235', NULL, NULL, NULL, NULL, '1795444633715646', 'maker', 'Infinity', 'Infinity', '0', '91ff2504-dd09-474f-a6bd-9d72a01783c5');
INSERT INTO journal VALUES ('0', 'ses-timer', '0', '2', '1795444633687', NULL, '{"type":"started","at":1795444633687,"seq":0}
{"type":"start_timer","fireAt":1795448233687,"seq":1,"id":0}', '3700219660');
INSERT INTO journal VALUES ('1', 'ses-hold', '0', '2', '1795444633804', NULL, '{"type":"started","at":1795444633804,"seq":0}
{"type":"schedule_task","kind":"call","hash":"3l8sv0wQoNFG8qZxqsNj6GQP78RprUKsJTZPGeS8GU8","seq":1,"id":0,"payload":"first"}', '1793362658');
INSERT INTO journal VALUES ('1', 'ses-hold', '2', '2', '1795444633809', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795444633808,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"first done"}
{"type":"schedule_task","kind":"call","hash":"OORStWpj2bXzlzVMvSB7DlSO-OT0lymm9t2NappXqyM","seq":3,"id":1,"payload":"second"}', '3148799977');
INSERT INTO journal VALUES ('1', 'ses-question', '0', '2', '1795444633683', NULL, '{"type":"started","at":1795444633683,"seq":0}
{"type":"request_input","hash":"SdPoiKK0KkRqBTeK4pQMGrn6qi7cMcjQMYLwksyDNy8","seq":1,"id":0,"payload":{"prompt":"Deploy?","details":{"version":2},"answer":"approval"}}', '1384600602');
INSERT INTO journal VALUES ('2', 'ses-signalled', '0', '2', '1795444633761', NULL, '{"type":"started","at":1795444633761,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', '3185265508');
INSERT INTO journal VALUES ('2', 'ses-signalled', '2', '3', '1795444633765', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795444633765,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', '2129497071');
INSERT INTO journal VALUES ('3', 'ses-listening', '0', '2', '1795444633703', NULL, '{"type":"started","at":1795444633702,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', '672054186');
INSERT INTO journal VALUES ('3', 'ses-listening', '2', '3', '1795444633723', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795444633711,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', '1149823371');
INSERT INTO journal VALUES ('5', 'ses-ended', '0', '3', '1795444633653', NULL, '{"type":"started","at":1795444633649,"seq":0}
{"type":"append_entry","role":"user","hash":"k_JFUQfU3C5m48Xy4USAc5zMMH9-HYWm_fM0SBaVv5s","seq":1,"id":0}
{"type":"schedule_task","kind":"call","hash":"xnZ5s9ABJOwWdYhyGSmYLSERytBbE1L9uDMFjpVZoXU","seq":2,"id":1,"payload":"only"}', '1541599713');
INSERT INTO journal VALUES ('5', 'ses-ended', '3', '3', '1795444633676', NULL, '{"type":"task_completed","task":1,"attempt":1,"at":1795444633675,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":3,"payload":"only done"}
{"type":"append_entry","role":"assistant","hash":"x-1uxIaVXU6VLhIZ35ps0FwU4TODgn2HOhwxc4LWa18","seq":4,"id":2}
{"type":"complete","seq":5,"id":3,"payload":{"length":65536,"output":"only done"}}', '3401908444');
INSERT INTO journal VALUES ('5', 'ses-parent', '0', '3', '1795444633692', NULL, '{"type":"started","at":1795444633690,"seq":0}
{"type":"spawn_child","agent":"child","hash":"K3O35PAOhxxprOELJNMXr1ZV5V_i2y7EyxRtRY_Sjoo","seq":1,"id":0}
{"type":"wait_signal","name":"child-end:0","mode":"consume","seq":2,"id":1}', '2936595909');
INSERT INTO journal VALUES ('5', 'ses-parent-0', '0', '2', '1795444633720', NULL, '{"type":"started","at":1795444633720,"seq":0}
{"type":"wait_signal","name":"finish","mode":"consume","seq":1,"id":0}', '2704370663');
INSERT INTO entry VALUES ('2', 'ses-signalled', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795444633765}', '"before done"', NULL, '1399906517');
INSERT INTO entry VALUES ('3', 'ses-listening', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795444633723}', '"before done"', NULL, '3479531283');
INSERT INTO entry VALUES ('5', 'ses-ended', '0', '{"index":0,"role":"user","turn":0,"createdAt":1795444633653}', '"begin"', NULL, '1329717256');
INSERT INTO entry VALUES ('5', 'ses-ended', '2', '{"index":1,"parent":0,"role":"assistant","turn":0,"createdAt":1795444633676}', '"only done"', NULL, '3952580102');
INSERT INTO signal VALUES ('2', 'ses-signalled', '1', 'sig-go', 'go', '1795444633794', '1', NULL, '2787945116');
INSERT INTO signal VALUES ('3', 'ses-listening', '1', 'sig-later', 'later', '1795444633711', '{"n":7}', NULL, '3337430754');
INSERT INTO seen VALUES ('2', 'ses-signalled', 'i:sig-go');
INSERT INTO seen VALUES ('3', 'ses-listening', 'i:sig-later');
INSERT INTO hold VALUES ('1', 'ses-hold', '1', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '3072013519');
INSERT INTO blob VALUES ('5', 'ses-ended', 'r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', '"' || repeat('x', 65536) || '"');
INSERT INTO item VALUES ('schedule', 'nightly', '1795444633757237', '1795489200000', '{"scheduleId":"nightly","cron":"0 3 * * *","timeZone":"UTC","action":{"type":"signal","sessionId":"ses-listening","name":"night"},"nextAt":1795489200000,"createdAt":1795444633724}', '1637813167');
INSERT INTO instance VALUES ('91ff2504-dd09-474f-a6bd-9d72a01783c5', '2026-11-23 14:37:13.659068+00');
