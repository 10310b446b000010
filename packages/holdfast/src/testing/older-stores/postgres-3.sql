CREATE TABLE meta (key text NOT NULL, value text NOT NULL);
CREATE TABLE session (session_id text COLLATE "C" NOT NULL, lane integer NOT NULL, born bigint NOT NULL, agent text COLLATE "C" NOT NULL, owner text COLLATE "C", parent text COLLATE "C", made text NOT NULL, checksum bigint NOT NULL);
CREATE TABLE state (lane integer NOT NULL, session_id text COLLATE "C" NOT NULL, version bigint NOT NULL, status text NOT NULL, ended integer NOT NULL, agent text COLLATE "C" NOT NULL, body text NOT NULL, checksum bigint NOT NULL, ready_at double precision, due_at double precision, overdue_at double precision, exhausted text COLLATE "C", token bigint NOT NULL, holder text COLLATE "C", until double precision NOT NULL, lease_ms double precision NOT NULL, losses integer NOT NULL, instance text COLLATE "C", born bigint DEFAULT ((EXTRACT(epoch FROM clock_timestamp()) * (1000000)::numeric))::bigint NOT NULL) WITH (fillfactor=70);
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
CREATE INDEX session_agent ON session USING btree (agent, born, session_id);
CREATE INDEX state_status ON state USING btree (status, born, session_id);
INSERT INTO meta VALUES ('lanes', '8');
INSERT INTO meta VALUES ('schema_version', '3');
INSERT INTO session VALUES ('ses-ended', '5', '1795476053058399', 'brief', NULL, NULL, '{"agent":{"name":"brief","version":"1"},"seed":220961449,"flags":127,"format":1,"depth":0,"payers":[],"createdAt":1795476053049,"inputBlob":"r7O77KyEZ4Xka4ftvtSdfgap4YbpznDvjlmzPJxyFF8"}', '588644007');
INSERT INTO session VALUES ('ses-hold', '1', '1795476053228602', 'spender', NULL, NULL, '{"agent":{"name":"spender","version":"1"},"seed":2244885472,"flags":127,"format":1,"depth":0,"payers":["ses-hold"],"createdAt":1795476053228}', '2901260776');
INSERT INTO session VALUES ('ses-leased', '1', '1795476053218935', 'brief', NULL, NULL, E'{"agent":{"name":"brief","version":"1"},"seed":1,"flags":127,"format":1,"depth":0,"payers":[],"createdAt":1795476053216,"input":"\\"later\\""}', '119011376');
INSERT INTO session VALUES ('ses-listening', '3', '1795476053123874', 'listener', NULL, NULL, '{"agent":{"name":"listener","version":"1"},"seed":2744252112,"flags":127,"format":1,"depth":0,"payers":["ses-listening"],"createdAt":1795476053123}', '1535954014');
INSERT INTO session VALUES ('ses-parent', '5', '1795476053107695', 'parent', NULL, NULL, '{"agent":{"name":"parent","version":"1"},"seed":3412276336,"flags":127,"format":1,"depth":0,"payers":[],"createdAt":1795476053098}', '1711940193');
INSERT INTO session VALUES ('ses-parent-0', '5', '1795476053107969', 'child', NULL, 'ses-parent', '{"agent":{"name":"child","version":"1"},"seed":1431588289,"flags":127,"format":1,"parent":{"sessionId":"ses-parent","child":0,"onEnd":"cancel"},"depth":1,"payers":[],"createdAt":1795476053098}', '3014886358');
INSERT INTO session VALUES ('ses-question', '1', '1795476053084046', 'asker', NULL, NULL, '{"agent":{"name":"asker","version":"1"},"seed":2671225855,"flags":127,"format":1,"depth":0,"payers":[],"createdAt":1795476053083}', '468427883');
INSERT INTO session VALUES ('ses-queued', '3', '1795476053214874', 'brief', NULL, NULL, E'{"agent":{"name":"brief","version":"1"},"seed":1,"flags":127,"format":1,"depth":0,"payers":[],"createdAt":1795476053214,"input":"\\"later\\""}', '1049788264');
INSERT INTO session VALUES ('ses-signalled', '2', '1795476053174861', 'listener', NULL, NULL, '{"agent":{"name":"listener","version":"1"},"seed":3231272033,"flags":127,"format":1,"depth":0,"payers":[],"createdAt":1795476053174}', '2325700473');
INSERT INTO session VALUES ('ses-timer', '0', '1795476053092074', 'sleeper', NULL, NULL, '{"agent":{"name":"sleeper","version":"1"},"seed":486299214,"flags":127,"format":1,"depth":0,"payers":[],"createdAt":1795476053091}', '564027171');
INSERT INTO state VALUES ('0', 'ses-timer', '1795476053092074', 'waiting', '0', 'sleeper', '{"status":"waiting","waits":[{"type":"timer","id":0,"at":1795479653091}],"wakeAt":1795479653091,"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795476053091}', '752314600', '1795479653091', NULL, NULL, NULL, '1795476053092077', 'maker', 'Infinity', 'Infinity', '0', 'b61aa8af-72a2-4ded-9c81-cb282b146496', '1795476053092074');
INSERT INTO state VALUES ('1', 'ses-hold', '1795476053228603', 'working', '0', 'spender', '{"status":"working","waits":[],"nextSeq":15,"entryCount":0,"turn":0,"inbox":0,"children":0,"account":{"limits":{"maxTokens":5000},"spent":{"tokens":30,"costMicroUsd":0,"steps":13,"turns":0},"reserved":{"tokens":1200,"costMicroUsd":0,"steps":0,"turns":0},"low":false},"updatedAt":1795476053234}', '4029337455', '-Infinity', NULL, NULL, NULL, '1795476053228605', 'maker', 'Infinity', 'Infinity', '0', 'b61aa8af-72a2-4ded-9c81-cb282b146496', '1795476053228602');
INSERT INTO state VALUES ('1', 'ses-leased', '1795476053218936', 'submitted', '0', 'brief', '{"status":"submitted","waits":[],"nextSeq":0,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795476053216}', '3436703882', '-Infinity', '1795476113216', NULL, NULL, '1795476053221685', 'runner', '1795476113216', '60000', '0', NULL, '1795476053218935');
INSERT INTO state VALUES ('1', 'ses-question', '1795476053084046', 'input_required', '0', 'asker', '{"status":"input_required","waits":[{"type":"input","id":0,"name":"answer:0","prompt":"Deploy?","answer":"approval"}],"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795476053083}', '2086518022', NULL, NULL, NULL, NULL, '1795476053084049', 'maker', 'Infinity', 'Infinity', '0', 'b61aa8af-72a2-4ded-9c81-cb282b146496', '1795476053084046');
INSERT INTO state VALUES ('2', 'ses-signalled', '1795476053174864', 'waiting', '0', 'listener', '{"status":"waiting","waits":[{"type":"signal","id":2,"name":"go"}],"nextSeq":5,"entryCount":1,"turn":0,"inbox":1,"children":0,"updatedAt":1795476053208}', '1038642691', '-Infinity', '-Infinity', NULL, NULL, '1795476053174863', NULL, '-Infinity', 'Infinity', '0', NULL, '1795476053174861');
INSERT INTO state VALUES ('3', 'ses-listening', '1795476053123876', 'waiting', '0', 'listener', '{"status":"waiting","waits":[{"type":"signal","id":2,"name":"go"}],"nextSeq":5,"entryCount":1,"turn":0,"inbox":1,"children":0,"account":{"limits":{"maxTokens":5000},"spent":{"tokens":30,"costMicroUsd":0,"steps":1,"turns":0},"reserved":{"tokens":0,"costMicroUsd":0,"steps":0,"turns":0},"low":false},"updatedAt":1795476053142}', '2240716371', NULL, NULL, NULL, NULL, '1795476053123877', 'maker', 'Infinity', 'Infinity', '0', 'b61aa8af-72a2-4ded-9c81-cb282b146496', '1795476053123874');
INSERT INTO state VALUES ('3', 'ses-queued', '1795476053214874', 'submitted', '0', 'brief', '{"status":"submitted","waits":[],"nextSeq":0,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795476053214}', '2483342886', '-Infinity', '-Infinity', NULL, NULL, '0', NULL, '-Infinity', '0', '0', NULL, '1795476053214874');
INSERT INTO state VALUES ('5', 'ses-ended', '1795476053058400', 'completed', '1', 'brief', E'{"status":"completed","waits":[],"nextSeq":6,"entryCount":2,"turn":0,"inbox":0,"output":"{\\"length\\":65536,\\"output\\":\\"only done\\"}","children":0,"updatedAt":1795476053077,"endedAt":1795476053077}', '741053238', NULL, NULL, NULL, NULL, '1795476053058410', 'maker', 'Infinity', 'Infinity', '0', NULL, '1795476053058399');
INSERT INTO state VALUES ('5', 'ses-parent', '1795476053107695', 'waiting', '0', 'parent', '{"status":"waiting","waits":[{"type":"signal","id":1,"name":"child-end:0"}],"nextSeq":3,"entryCount":0,"turn":0,"inbox":0,"children":1,"updatedAt":1795476053098}', '717610624', NULL, NULL, NULL, NULL, '1795476053107698', 'maker', 'Infinity', 'Infinity', '0', 'b61aa8af-72a2-4ded-9c81-cb282b146496', '1795476053107695');
INSERT INTO state VALUES ('5', 'ses-parent-0', '1795476053107971', 'waiting', '0', 'child', '{"status":"waiting","waits":[{"type":"signal","id":0,"name":"finish"}],"nextSeq":2,"entryCount":0,"turn":0,"inbox":0,"children":0,"updatedAt":1795476053170}', '521565355', NULL, NULL, NULL, NULL, '1795476053140839', 'maker', 'Infinity', 'Infinity', '0', 'b61aa8af-72a2-4ded-9c81-cb282b146496', '1795476053107969');
INSERT INTO journal VALUES ('0', 'ses-timer', '0', '2', '1795476053091', NULL, '{"type":"started","at":1795476053091,"seq":0}
{"type":"start_timer","fireAt":1795479653091,"seq":1,"id":0}', '2074517881');
INSERT INTO journal VALUES ('1', 'ses-hold', '0', '2', '1795476053228', NULL, '{"type":"started","at":1795476053227,"seq":0}
{"type":"schedule_task","kind":"call","hash":"3l8sv0wQoNFG8qZxqsNj6GQP78RprUKsJTZPGeS8GU8","seq":1,"id":0,"payload":"first"}', '1025440802');
INSERT INTO journal VALUES ('1', 'ses-hold', '2', '13', '1795476053234', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795476053230,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"first done"}
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
{"type":"schedule_task","kind":"call","hash":"SSqtSUdrwFcp_rfgLd8VGD77QJuN5gemMfpZ4ml8wnY","seq":14,"id":12,"payload":"wide 11"}', '2226184970');
INSERT INTO journal VALUES ('1', 'ses-question', '0', '2', '1795476053083', NULL, '{"type":"started","at":1795476053082,"seq":0}
{"type":"request_input","hash":"SdPoiKK0KkRqBTeK4pQMGrn6qi7cMcjQMYLwksyDNy8","seq":1,"id":0,"payload":{"prompt":"Deploy?","details":{"version":2},"answer":"approval"}}', '2979544398');
INSERT INTO journal VALUES ('2', 'ses-signalled', '0', '2', '1795476053174', NULL, '{"type":"started","at":1795476053174,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', '4129112936');
INSERT INTO journal VALUES ('2', 'ses-signalled', '2', '3', '1795476053177', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795476053176,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', '2927799853');
INSERT INTO journal VALUES ('3', 'ses-listening', '0', '2', '1795476053123', NULL, '{"type":"started","at":1795476053121,"seq":0}
{"type":"schedule_task","kind":"call","hash":"JsTzjhYqmEVNVNzYC44ByWK1LeO0yWXM_p0aka5_GGI","seq":1,"id":0,"payload":"before"}', '3588210051');
INSERT INTO journal VALUES ('3', 'ses-listening', '2', '3', '1795476053142', NULL, '{"type":"task_completed","task":0,"attempt":1,"at":1795476053138,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":2,"payload":"before done"}
{"type":"append_entry","role":"user","hash":"ZMBRBTX11jTRpOhu08p6cSFdlXsc9DxAjs23YX4xYwo","seq":3,"id":1}
{"type":"wait_signal","name":"go","mode":"consume","seq":4,"id":2}', '2329719695');
INSERT INTO journal VALUES ('5', 'ses-ended', '0', '3', '1795476053049', NULL, '{"type":"started","at":1795476053045,"seq":0}
{"type":"append_entry","role":"user","hash":"k_JFUQfU3C5m48Xy4USAc5zMMH9-HYWm_fM0SBaVv5s","seq":1,"id":0}
{"type":"schedule_task","kind":"call","hash":"xnZ5s9ABJOwWdYhyGSmYLSERytBbE1L9uDMFjpVZoXU","seq":2,"id":1,"payload":"only"}', '3149519755');
INSERT INTO journal VALUES ('5', 'ses-ended', '3', '3', '1795476053077', NULL, '{"type":"task_completed","task":1,"attempt":1,"at":1795476053075,"usage":{"model":"model","inputTokens":20,"outputTokens":10},"seq":3,"payload":"only done"}
{"type":"append_entry","role":"assistant","hash":"x-1uxIaVXU6VLhIZ35ps0FwU4TODgn2HOhwxc4LWa18","seq":4,"id":2}
{"type":"complete","seq":5,"id":3,"payload":{"length":65536,"output":"only done"}}', '1687064089');
INSERT INTO journal VALUES ('5', 'ses-parent', '0', '3', '1795476053098', NULL, '{"type":"started","at":1795476053095,"seq":0}
{"type":"spawn_child","agent":"child","hash":"K3O35PAOhxxprOELJNMXr1ZV5V_i2y7EyxRtRY_Sjoo","seq":1,"id":0}
{"type":"wait_signal","name":"child-end:0","mode":"consume","seq":2,"id":1}', '3016290683');
INSERT INTO journal VALUES ('5', 'ses-parent-0', '0', '2', '1795476053170', NULL, '{"type":"started","at":1795476053170,"seq":0}
{"type":"wait_signal","name":"finish","mode":"consume","seq":1,"id":0}', '4276290039');
INSERT INTO entry VALUES ('2', 'ses-signalled', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795476053177}', '"before done"', NULL, '3297175655');
INSERT INTO entry VALUES ('3', 'ses-listening', '1', '{"index":0,"role":"user","turn":0,"createdAt":1795476053142}', '"before done"', NULL, '3928438337');
INSERT INTO entry VALUES ('5', 'ses-ended', '0', '{"index":0,"role":"user","turn":0,"createdAt":1795476053049}', '"begin"', NULL, '3649035149');
INSERT INTO entry VALUES ('5', 'ses-ended', '2', '{"index":1,"parent":0,"role":"assistant","turn":0,"createdAt":1795476053077}', '"only done"', NULL, '823902237');
INSERT INTO signal VALUES ('2', 'ses-signalled', '1', 'sig-go', 'go', '1795476053208', '1', NULL, '2571444439');
INSERT INTO signal VALUES ('3', 'ses-listening', '1', 'sig-later', 'later', '1795476053138', '{"n":7}', NULL, '2209083562');
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
INSERT INTO item VALUES ('audit', 'last', '1795476053219086', NULL, '{"seq":1,"hash":"gbYmbJJBZt3Jb4PU_GIl0yN_6jLF0AbZoF3y_EYvBOY"}', '3590167232');
INSERT INTO item VALUES ('document:notes', 'note-1', '1795476053217746', NULL, E'{"id":"note-1","body":"{\\"text\\":\\"kept\\"}","version":1,"updatedAt":1795476053216}', '2697787147');
INSERT INTO item VALUES ('schedule', 'nightly', '1795476053171806', '1795489200000', '{"scheduleId":"nightly","cron":"0 3 * * *","timeZone":"UTC","action":{"type":"signal","sessionId":"ses-listening","name":"night"},"nextAt":1795489200000,"createdAt":1795476053142}', '3624035032');
INSERT INTO audit VALUES ('1', '{"seq":1,"at":1795476053216,"actor":"anna","action":"start","object":"ses-leased","outcome":"created","hash":"gbYmbJJBZt3Jb4PU_GIl0yN_6jLF0AbZoF3y_EYvBOY"}', '923626491');
INSERT INTO instance VALUES ('b61aa8af-72a2-4ded-9c81-cb282b146496', '2026-11-23 23:20:53.063019+00', NULL);
