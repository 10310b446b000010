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
INSERT INTO session VALUES ('ses-ended', '5', '1795445844983920', 'brief', NULL, NULL, '{"agent":{"name":"brief","version":"1"},"seed":3078187725,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445844978,"inputBlob":"r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8"}', '2169617198');
INSERT INTO session VALUES ('ses-hold', '1', '1795445845194248', 'spender', NULL, NULL, '{"agent":{"name":"spender","version":"1"},"seed":3927991322,"flags":7,"format":1,"depth":0,"payers":["ses-hold"],"createdAt":1795445845194}', '1204272284');
INSERT INTO session VALUES ('ses-leased', '1', '1795445845182737', 'brief', NULL, NULL, E'{"agent":{"name":"brief","version":"1"},"seed":1,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445845181,"input":"\\"later\\""}', '3013192915');
INSERT INTO session VALUES ('ses-listening', '3', '1795445845062192', 'listener', NULL, NULL, '{"agent":{"name":"listener","version":"1"},"seed":70548439,"flags":7,"format":1,"depth":0,"payers":["ses-listening"],"createdAt":1795445845061}', '2788107575');
INSERT INTO session VALUES ('ses-parent', '5', '1795445845047782', 'parent', NULL, NULL, '{"agent":{"name":"parent","version":"1"},"seed":3448250527,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445845044}', '2020737647');
INSERT INTO session VALUES ('ses-parent-0', '5', '1795445845048084', 'child', NULL, 'ses-parent', '{"agent":{"name":"child","version":"1"},"seed":1405049134,"flags":7,"format":1,"parent":{"sessionId":"ses-parent","child":0,"onEnd":"cancel"},"depth":1,"payers":[],"createdAt":1795445845044}', '3584231850');
INSERT INTO session VALUES ('ses-question', '1', '1795445845025725', 'asker', NULL, NULL, '{"agent":{"name":"asker","version":"1"},"seed":246199466,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445845025}', '2062476975');
INSERT INTO session VALUES ('ses-queued', '3', '1795445845179564', 'brief', NULL, NULL, E'{"agent":{"name":"brief","version":"1"},"seed":1,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445845179,"input":"\\"later\\""}', '1128030643');
INSERT INTO session VALUES ('ses-signalled', '2', '1795445845145127', 'listener', NULL, NULL, '{"agent":{"name":"listener","version":"1"},"seed":4045263235,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445845145}', '1985905789');
INSERT INTO session VALUES ('ses-timer', '0', '1795445845037377', 'sleeper', NULL, NULL, '{"agent":{"name":"sleeper","version":"1"},"seed":1901251956,"flags":7,"format":1,"depth":0,"payers":[],"createdAt":1795445845037}', '2127736333');
INSERT INTO state VALUES ('0', 'ses-timer', '1795445845037377', 'waiting', '0', 'sleeper', '{"status":"waiting","waits":[{"type":"timer","id":0,"at":1795449445036}],"wakeAt":1795449445036,"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795445845037}', '2927353841', '1795449445036', NULL, NULL, NULL, '1795445845037397', 'maker', 'Infinity', 'Infinity', '0', 'cdcf44bb-3309-4187-a28e-ea44d5bcdbc8');
INSERT INTO state VALUES ('1', 'ses-hold', '1795445845194249', 'working', '0', 'spender', '{"status":"working","waits":[],"nextSeq":15,"entryCount":0,"turn":0,"inbox":0,"children":0,"account":{"limits":{"maxTokens":5000},"spent":{"tokens":30,"costMicroUsd":0,"steps":13,"turns":0},"reserved":{"tokens":1200,"costMicroUsd":0,"steps":0,"turns":0},"low":false},"updatedAt":1795445845197}', '81061328', '-Infinity', NULL, NULL, NULL, '1795445845194257', 'maker', 'Infinity', 'Infinity', '0', 'cdcf44bb-3309-4187-a28e-ea44d5bcdbc8');
INSERT INTO state VALUES ('1', 'ses-leased', '1795445845182738', 'submitted', '0', 'brief', '{"status":"submitted","waits":[],"nextSeq":0,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795445845181}', '1577296232', '-Infinity', '1795445905181', NULL, NULL, '1795445845187019', 'runner', '1795445905181', '60000', '0', NULL);
INSERT INTO state VALUES ('1', 'ses-question', '1795445845025725', 'input_required', '0', 'asker', '{"status":"input_required","waits":[{"type":"input","id":0,"name":"answer:0","prompt":"Deploy?","answer":"approval"}],"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795445845025}', '3881946130', NULL, NULL, NULL, NULL, '1795445845025760', 'maker', 'Infinity', 'Infinity', '0', 'cdcf44bb-3309-4187-a28e-ea44d5bcdbc8');
INSERT INTO state VALUES ('2', 'ses-signalled', '1795445845145130', 'waiting', '0', 'listener', '{"status":"waiting","waits":[{"type":"signal","id":2,"name":"go"}],"nextSeq":5,"entryCount":1,"turn":0,"inbox":1,"children":0,"updatedAt":1795445845174}', '1180093216', '-Infinity', '-Infinity', NULL, NULL, '1795445845145142', NULL, '-Infinity', 'Infinity', '0', NULL);
INSERT INTO state VALUES ('3', 'ses-listening', '1795445845062194', 'waiting', '0', 'listener', '{"status":"waiting","waits":[{"type":"signal","id":2,"name":"go"}],"nextSeq":5,"entryCount":1,"turn":0,"inbox":1,"children":0,"account":{"limits":{"maxTokens":5000},"spent":{"tokens":30,"costMicroUsd":0,"steps":1,"turns":0},"reserved":{"tokens":0,"costMicroUsd":0,"steps":0,"turns":0},"low":false},"updatedAt":1795445845070}', '3451090601', NULL, NULL, NULL, NULL, '1795445845062218', 'maker', 'Infinity', 'Infinity', '0', 'cdcf44bb-3309-4187-a28e-ea44d5bcdbc8');
INSERT INTO state VALUES ('3', 'ses-queued', '1795445845179564', 'submitted', '0', 'brief', '{"status":"submitted","waits":[],"nextSeq":0,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795445845179}', '4150472819', '-Infinity', '-Infinity', NULL, NULL, '0', NULL, '-Infinity', '0', '0', NULL);
INSERT INTO state VALUES ('5', 'ses-ended', '1795445844983921', 'completed', '1', 'brief', E'{"status":"completed","waits":[],"nextSeq":6,"entryCount":2,"turn":0,"inbox":0,"output":"{\\"length\\":65536,\\"output\\":\\"only done\\"}","children":0,"updatedAt":1795445845006,"endedAt":1795445845006}', '2372979476', NULL, NULL, NULL, NULL, '1795445844983993', 'maker', 'Infinity', 'Infinity', '0', NULL);
INSERT INTO state VALUES ('5', 'ses-parent', '1795445845047782', 'waiting', '0', 'parent', '{"status":"waiting","waits":[{"type":"signal","id":1,"name":"child-end:0"}],"nextSeq":3,"entryCount":0,"turn":0,"inbox":0,"children":1,"updatedAt":1795445845044}', '1314476443', NULL, NULL, NULL, NULL, '1795445845047810', 'maker', 'Infinity', 'Infinity', '0', 'cdcf44bb-3309-4187-a28e-ea44d5bcdbc8');
INSERT INTO state VALUES ('5', 'ses-parent-0', '1795445845048086', 'waiting', '0', 'child', '{"status":"waiting","waits":[{"type":"signal","id":0,"name":"finish"}],"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795445845135}', '2778299254', NULL, NULL, NULL, NULL, '1795445845069924', 'maker', 'Infinity', 'Infinity', '0', 'cdcf44bb-3309-4187-a28e-ea44d5bcdbc8');
INSERT INTO journal VALUES ('0', 'ses-timer', '0', '2', '1795445845037', NULL, '{"type":"started","at":1795445845036,"seq":0}
{"type":"start_timer","fireAt":1795449445036,"seq":1,"id":0}', '1334095382');
INSERT INTO journal VALUES ('1', 'ses-hold', '0', '2', '1795445845194', NULL, '{"type":"started","at":1795445845193,"seq":0}
{"type":"schedule_task","kind":"call","hash":"3l8sv0wQoNFG8qZxqsNj6GQP78RprUKsJTZPGeS8GU8","seq":1,"id":0,"payload":"first"}', '2210859422');
INSERT INTO journal VALUES ('1', 'ses-hold', '2', '13', '1795445845197', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795445845197,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"first done"}
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
{"type":"schedule_task","kind":"call","hash":"SSqtSUdrwFcp_rfgLd8VGD77QJuN5gemMfpZ4ml8wnY","seq":14,"id":12,"payload":"wide 11"}', '4057338109');
INSERT INTO journal VALUES ('1', 'ses-question', '0', '2', '1795445845025', NULL, '{"type":"started","at":1795445845025,"seq":0}
{"type":"request_input","hash":"SdPoiKK0KkRqBTeK4pQMGrn6qi7cMcjQMYLwksyDNy8","seq":1,"id":0,"payload":{"prompt":"Deploy?","details":{"version":2},"answer":"approval"}}', '3010392110');
INSERT INTO journal VALUES ('2', 'ses-signalled', '0', '2', '1795445845145', NULL, '{"type":"started","at":1795445845144,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', '560704764');
INSERT INTO journal VALUES ('2', 'ses-signalled', '2', '3', '1795445845147', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795445845147,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', '1402433959');
INSERT INTO journal VALUES ('3', 'ses-listening', '0', '2', '1795445845061', NULL, '{"type":"started","at":1795445845060,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', '2934525983');
INSERT INTO journal VALUES ('3', 'ses-listening', '2', '3', '1795445845070', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795445845066,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', '1136250837');
INSERT INTO journal VALUES ('5', 'ses-ended', '0', '3', '1795445844978', NULL, '{"type":"started","at":1795445844971,"seq":0}
{"type":"append_entry","role":"user","hash":"k_JFUQfU3C5m48Xy4USAc5zMMH9-HYWm_fM0SBaVv5s","seq":1,"id":0}
{"type":"schedule_task","kind":"call","hash":"xnZ5s9ABJOwWdYhyGSmYLSERytBbE1L9uDMFjpVZoXU","seq":2,"id":1,"payload":"only"}', '493289230');
INSERT INTO journal VALUES ('5', 'ses-ended', '3', '3', '1795445845006', NULL, '{"type":"task_completed","task":1,"attempt":1,"at":1795445845004,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":3,"payload":"only done"}
{"type":"append_entry","role":"assistant","hash":"x-1uxIaVXU6VLhIZ35ps0FwU4TODgn2HOhwxc4LWa18","seq":4,"id":2}
{"type":"complete","seq":5,"id":3,"payload":{"length":65536,"output":"only done"}}', '2499038395');
INSERT INTO journal VALUES ('5', 'ses-parent', '0', '3', '1795445845044', NULL, '{"type":"started","at":1795445845042,"seq":0}
{"type":"spawn_child","agent":"child","hash":"K3O35PAOhxxprOELJNMXr1ZV5V_i2y7EyxRtRY_Sjoo","seq":1,"id":0}
{"type":"wait_signal","name":"child-end:0","mode":"consume","seq":2,"id":1}', '1414033949');
INSERT INTO journal VALUES ('5', 'ses-parent-0', '0', '2', '1795445845135', NULL, '{"type":"started","at":1795445845134,"seq":0}
{"type":"wait_signal","name":"finish","mode":"consume","seq":1,"id":0}', '3034717812');
INSERT INTO entry VALUES ('2', 'ses-signalled', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795445845147}', '"before done"', NULL, '2722209115');
INSERT INTO entry VALUES ('3', 'ses-listening', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795445845070}', '"before done"', NULL, '2403226594');
INSERT INTO entry VALUES ('5', 'ses-ended', '0', '{"index":0,"role":"user","turn":0,"createdAt":1795445844978}', '"begin"', NULL, '4274238676');
INSERT INTO entry VALUES ('5', 'ses-ended', '2', '{"index":1,"parent":0,"role":"assistant","turn":0,"createdAt":1795445845006}', '"only done"', NULL, '1933190732');
INSERT INTO signal VALUES ('2', 'ses-signalled', '1', 'sig-go', 'go', '1795445845174', '1', NULL, '2169535343');
INSERT INTO signal VALUES ('3', 'ses-listening', '1', 'sig-later', 'later', '1795445845066', '{"n":7}', NULL, '4288757102');
INSERT INTO seen VALUES ('2', 'ses-signalled', 'i:sig-go');
INSERT INTO seen VALUES ('3', 'ses-listening', 'i:sig-later');
INSERT INTO hold VALUES ('1', 'ses-hold', '1', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '3072013519');
INSERT INTO hold VALUES ('1', 'ses-hold', '10', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '3115914906');
INSERT INTO hold VALUES ('1', 'ses-hold', '11', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '3345065691');
INSERT INTO hold VALUES ('1', 'ses-hold', '12', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '1141405208');
INSERT INTO hold VALUES ('1', 'ses-hold', '2', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '879944716');
INSERT INTO hold VALUES ('1', 'ses-hold', '3', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '1252676685');
INSERT INTO hold VALUES ('1', 'ses-hold', '4', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '3922740171');
INSERT INTO hold VALUES ('1', 'ses-hold', '5', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '2533946250');
INSERT INTO hold VALUES ('1', 'ses-hold', '6', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '341910345');
INSERT INTO hold VALUES ('1', 'ses-hold', '7', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '1790546696');
INSERT INTO hold VALUES ('1', 'ses-hold', '8', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '2313423364');
INSERT INTO hold VALUES ('1', 'ses-hold', '9', '{"tokens":100,"costMicroUsd":0,"steps":1,"turns":0}', '4147952197');
INSERT INTO blob VALUES ('5', 'ses-ended', 'r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8', '"' || repeat('x', 65536) || '"');
INSERT INTO item VALUES ('audit', 'last', '1795445845182909', NULL, '{"seq":1,"hash":"qWkmNYSqkmMMahswmDr5TFAy7ONnUQHtpzkWqs7AUVc"}', '1584715085');
INSERT INTO item VALUES ('document:notes', 'note-1', '1795445845182713', NULL, E'{"id":"note-1","body":"{\\"text\\":\\"kept\\"}","version":1,"updatedAt":1795445845181}', '840476393');
INSERT INTO item VALUES ('schedule', 'nightly', '1795445845141487', '1795489200000', '{"scheduleId":"nightly","cron":"0 3 * * *","timeZone":"UTC","action":{"type":"signal","sessionId":"ses-listening","name":"night"},"nextAt":1795489200000,"createdAt":1795445845071}', '2300885859');
INSERT INTO audit VALUES ('1', '{"seq":1,"at":1795445845181,"actor":"anna","action":"start","object":"ses-leased","outcome":"created","hash":"qWkmNYSqkmMMahswmDr5TFAy7ONnUQHtpzkWqs7AUVc"}', '1337499295');
INSERT INTO instance VALUES ('cdcf44bb-3309-4187-a28e-ea44d5bcdbc8', '2026-11-23 14:57:24.98691+00');
