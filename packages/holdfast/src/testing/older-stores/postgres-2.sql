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
CREATE TABLE instance (instance text COLLATE "C" NOT NULL, said_at timestamp with time zone NOT NULL, presence text);
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
INSERT INTO meta VALUES ('schema_version', '2');
INSERT INTO session VALUES ('ses-ended', '5', '1795445078086975', 'brief', NULL, NULL, '{"agent":{"name":"brief","version":"1"},"seed":2230037345,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445078078,"inputBlob":"r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8"}', '4082592410');
INSERT INTO session VALUES ('ses-hold', '1', '1795445078237808', 'spender', NULL, NULL, '{"agent":{"name":"spender","version":"1"},"seed":900273749,"flags":7,"format":1,"depth":0,"payers":["ses-hold"],"createdAt":1795445078237}', '705351806');
INSERT INTO session VALUES ('ses-listening', '3', '1795445078136166', 'listener', NULL, NULL, '{"agent":{"name":"listener","version":"1"},"seed":900311255,"flags":7,"format":1,"depth":0,"payers":["ses-listening"],"createdAt":1795445078135}', '4156712224');
INSERT INTO session VALUES ('ses-parent', '5', '1795445078130047', 'parent', NULL, NULL, '{"agent":{"name":"parent","version":"1"},"seed":1675482395,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445078126}', '4158877628');
INSERT INTO session VALUES ('ses-parent-0', '5', '1795445078130397', 'child', NULL, 'ses-parent', '{"agent":{"name":"child","version":"1"},"seed":4260015274,"flags":7,"format":1,"parent":{"sessionId":"ses-parent","child":0,"onEnd":"cancel"},"depth":1,"payers":[],"createdAt":1795445078126}', '3298428962');
INSERT INTO session VALUES ('ses-question', '1', '1795445078118592', 'asker', NULL, NULL, '{"agent":{"name":"asker","version":"1"},"seed":3325897458,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445078118}', '1909584092');
INSERT INTO session VALUES ('ses-queued', '3', '1795445078235379', 'brief', NULL, NULL, E'{"agent":{"name":"brief","version":"1"},"seed":1,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445078235,"input":"\\"later\\""}', '2067240377');
INSERT INTO session VALUES ('ses-signalled', '2', '1795445078195055', 'listener', NULL, NULL, '{"agent":{"name":"listener","version":"1"},"seed":2021524202,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445078194}', '2941649867');
INSERT INTO session VALUES ('ses-timer', '0', '1795445078122651', 'sleeper', NULL, NULL, '{"agent":{"name":"sleeper","version":"1"},"seed":2515055720,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445078122}', '1374316962');
INSERT INTO state VALUES ('0', 'ses-timer', '1795445078122651', 'waiting', '0', 'sleeper', '{"status":"waiting","waits":[{"type":"timer","id":0,"at":1795448678121}],"wakeAt":1795448678121,"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795445078122}', '2947961487', '1795448678121', NULL, NULL, NULL, '1795445078122683', 'maker', 'Infinity', 'Infinity', '0', 'e5c6daf2-3018-41b0-bb3b-d1504f27e812');
INSERT INTO state VALUES ('1', 'ses-hold', '1795445078237809', 'working', '0', 'spender', '{"status":"working","waits":[],"nextSeq":4,"entryCount":0,"turn":0,"inbox":0,"children":0,"account":{"limits":{"maxTokens":1000},"spent":{"tokens":30,"costMicroUsd":0,"steps":2,"turns":0},"reserved":{"tokens":100,"costMicroUsd":0,"steps":0,"turns":0},"low":false},"updatedAt":1795445078242}', '20611529', '-Infinity', NULL, NULL, NULL, '1795445078237834', 'maker', 'Infinity', 'Infinity', '0', 'e5c6daf2-3018-41b0-bb3b-d1504f27e812');
INSERT INTO state VALUES ('1', 'ses-question', '1795445078118592', 'input_required', '0', 'asker', '{"status":"input_required","waits":[{"type":"input","id":0,"name":"answer:0","prompt":"Deploy?","answer":"approval"}],"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795445078118}', '2782827291', NULL, NULL, NULL, NULL, '1795445078118634', 'maker', 'Infinity', 'Infinity', '0', 'e5c6daf2-3018-41b0-bb3b-d1504f27e812');
INSERT INTO state VALUES ('2', 'ses-signalled', '1795445078195058', 'waiting', '0', 'listener', '{"status":"waiting","waits":[{"type":"signal","id":2,"name":"go"}],"nextSeq":5,"entryCount":1,"turn":0,"inbox":1,"children":0,"updatedAt":1795445078229}', '2859278352', '-Infinity', '-Infinity', NULL, NULL, '1795445078195079', NULL, '-Infinity', 'Infinity', '0', NULL);
INSERT INTO state VALUES ('3', 'ses-listening', '1795445078136168', 'waiting', '0', 'listener', '{"status":"waiting","waits":[{"type":"signal","id":2,"name":"go"}],"nextSeq":5,"entryCount":1,"turn":0,"inbox":1,"children":0,"account":{"limits":{"maxTokens":1000},"spent":{"tokens":30,"costMicroUsd":0,"steps":1,"turns":0},"reserved":{"tokens":0,"costMicroUsd":0,"steps":0,"turns":0},"low":false},"updatedAt":1795445078153}', '1412372201', NULL, NULL, NULL, NULL, '1795445078136196', 'maker', 'Infinity', 'Infinity', '0', 'e5c6daf2-3018-41b0-bb3b-d1504f27e812');
INSERT INTO state VALUES ('3', 'ses-queued', '1795445078235379', 'submitted', '0', 'brief', '{"status":"submitted","waits":[],"nextSeq":0,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795445078235}', '58818613', '-Infinity', '-Infinity', NULL, NULL, '0', NULL, '-Infinity', '0', '0', NULL);
INSERT INTO state VALUES ('5', 'ses-ended', '1795445078086976', 'completed', '1', 'brief', E'{"status":"completed","waits":[],"nextSeq":6,"entryCount":2,"turn":0,"inbox":0,"output":"{\\"length\\":65536,\\"output\\":\\"only done\\"}","children":0,"updatedAt":1795445078110,"endedAt":1795445078110}', '3597909906', NULL, NULL, NULL, NULL, '1795445078087113', 'maker', 'Infinity', 'Infinity', '0', NULL);
INSERT INTO state VALUES ('5', 'ses-parent', '1795445078130047', 'waiting', '0', 'parent', '{"status":"waiting","waits":[{"type":"signal","id":1,"name":"child-end:0"}],"nextSeq":3,"entryCount":0,"turn":0,"inbox":0,"children":1,"updatedAt":1795445078126}', '2377502902', NULL, NULL, NULL, NULL, '1795445078130079', 'maker', 'Infinity', 'Infinity', '0', 'e5c6daf2-3018-41b0-bb3b-d1504f27e812');
INSERT INTO state VALUES ('5', 'ses-parent-0', '1795445078130399', 'waiting', '0', 'child', '{"status":"waiting","waits":[{"type":"signal","id":0,"name":"finish"}],"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795445078183}', '2994588521', NULL, NULL, NULL, NULL, '1795445078144263', 'maker', 'Infinity', 'Infinity', '0', 'e5c6daf2-3018-41b0-bb3b-d1504f27e812');
INSERT INTO journal VALUES ('0', 'ses-timer', '0', '2', '1795445078122', NULL, '{"type":"started","at":1795445078121,"seq":0}
{"type":"start_timer","fireAt":1795448678121,"seq":1,"id":0}', '4263389359');
INSERT INTO journal VALUES ('1', 'ses-hold', '0', '2', '1795445078237', NULL, '{"type":"started","at":1795445078237,"seq":0}
{"type":"schedule_task","kind":"call","hash":"3l8sv0wQoNFG8qZxqsNj6GQP78RprUKsJTZPGeS8GU8","seq":1,"id":0,"payload":"first"}', '2178688122');
INSERT INTO journal VALUES ('1', 'ses-hold', '2', '2', '1795445078242', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795445078241,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"first done"}
{"type":"schedule_task","kind":"call","hash":"OORStWpj2bXzlzVMvSB7DlSO-OT0lymm9t2NappXqyM","seq":3,"id":1,"payload":"second"}', '3489763661');
INSERT INTO journal VALUES ('1', 'ses-question', '0', '2', '1795445078118', NULL, '{"type":"started","at":1795445078117,"seq":0}
{"type":"request_input","hash":"SdPoiKK0KkRqBTeK4pQMGrn6qi7cMcjQMYLwksyDNy8","seq":1,"id":0,"payload":{"prompt":"Deploy?","details":{"version":2},"answer":"approval"}}', '2940069689');
INSERT INTO journal VALUES ('2', 'ses-signalled', '0', '2', '1795445078194', NULL, '{"type":"started","at":1795445078194,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', '3728959597');
INSERT INTO journal VALUES ('2', 'ses-signalled', '2', '3', '1795445078199', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795445078199,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', '2156291173');
INSERT INTO journal VALUES ('3', 'ses-listening', '0', '2', '1795445078135', NULL, '{"type":"started","at":1795445078134,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', '1796917191');
INSERT INTO journal VALUES ('3', 'ses-listening', '2', '3', '1795445078153', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795445078145,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', '2349329820');
INSERT INTO journal VALUES ('5', 'ses-ended', '0', '3', '1795445078078', NULL, '{"type":"started","at":1795445078073,"seq":0}
{"type":"append_entry","role":"user","hash":"k_JFUQfU3C5m48Xy4USAc5zMMH9-HYWm_fM0SBaVv5s","seq":1,"id":0}
{"type":"schedule_task","kind":"call","hash":"xnZ5s9ABJOwWdYhyGSmYLSERytBbE1L9uDMFjpVZoXU","seq":2,"id":1,"payload":"only"}', '525920074');
INSERT INTO journal VALUES ('5', 'ses-ended', '3', '3', '1795445078110', NULL, '{"type":"task_completed","task":1,"attempt":1,"at":1795445078109,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":3,"payload":"only done"}
{"type":"append_entry","role":"assistant","hash":"x-1uxIaVXU6VLhIZ35ps0FwU4TODgn2HOhwxc4LWa18","seq":4,"id":2}
{"type":"complete","seq":5,"id":3,"payload":{"length":65536,"output":"only done"}}', '3861690061');
INSERT INTO journal VALUES ('5', 'ses-parent', '0', '3', '1795445078126', NULL, '{"type":"started","at":1795445078125,"seq":0}
{"type":"spawn_child","agent":"child","hash":"K3O35PAOhxxprOELJNMXr1ZV5V_i2y7EyxRtRY_Sjoo","seq":1,"id":0}
{"type":"wait_signal","name":"child-end:0","mode":"consume","seq":2,"id":1}', '758703734');
INSERT INTO journal VALUES ('5', 'ses-parent-0', '0', '2', '1795445078183', NULL, '{"type":"started","at":1795445078183,"seq":0}
{"type":"wait_signal","name":"finish","mode":"consume","seq":1,"id":0}', '1866285476');
INSERT INTO entry VALUES ('2', 'ses-signalled', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795445078199}', '"before done"', NULL, '1690437736');
INSERT INTO entry VALUES ('3', 'ses-listening', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795445078153}', '"before done"', NULL, '2057191923');
INSERT INTO entry VALUES ('5', 'ses-ended', '0', '{"index":0,"role":"user","turn":0,"createdAt":1795445078078}', '"begin"', NULL, '835574311');
INSERT INTO entry VALUES ('5', 'ses-ended', '2', '{"index":1,"parent":0,"role":"assistant","turn":0,"createdAt":1795445078110}', '"only done"', NULL, '3039311772');
INSERT INTO signal VALUES ('2', 'ses-signalled', '1', 'sig-go', 'go', '1795445078229', '1', NULL, '1775147607');
INSERT INTO signal VALUES ('3', 'ses-listening', '1', 'sig-later', 'later', '1795445078145', '{"n":7}', NULL, '597424865');
INSERT INTO seen VALUES ('2', 'ses-signalled', 'i:sig-go');
INSERT INTO seen VALUES ('3', 'ses-listening', 'i:sig-later');
INSERT INTO hold VALUES ('1', 'ses-hold', '1', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '3072013519');
INSERT INTO blob VALUES ('5', 'ses-ended', 'r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', '"' || repeat('x', 65536) || '"');
INSERT INTO item VALUES ('schedule', 'nightly', '1795445078189935', '1795489200000', '{"scheduleId":"nightly","cron":"0 3 * * *","timeZone":"UTC","action":{"type":"signal","sessionId":"ses-listening","name":"night"},"nextAt":1795489200000,"createdAt":1795445078155}', '463156500');
INSERT INTO instance VALUES ('e5c6daf2-3018-41b0-bb3b-d1504f27e812', '2026-11-23 14:44:38.093184+00', NULL);
