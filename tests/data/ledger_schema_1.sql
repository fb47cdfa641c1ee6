PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
BEGIN TRANSACTION;
CREATE TABLE handled (
        store TEXT NOT NULL, session TEXT NOT NULL, message TEXT NOT NULL, outcome TEXT NOT NULL,
        session_state TEXT NOT NULL, rules_version INTEGER NOT NULL,
        PRIMARY KEY (store, session, message)) WITHOUT ROWID;
INSERT INTO "handled" VALUES('/s','ses_1','msg_1','healed','s',1);
INSERT INTO "handled" VALUES('/s','ses_2','msg_2','not_understood','',1);
CREATE TABLE image (
        seq INTEGER NOT NULL REFERENCES recovery (seq), position INTEGER NOT NULL, key TEXT NOT NULL,
        before BLOB, after BLOB, mode INTEGER, PRIMARY KEY (seq, position));
INSERT INTO "image" VALUES(1,0,'part/a',X'7B2274657874223A2220227D',X'7B2274657874223A2278227D',420);
CREATE TABLE recovery (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, time REAL NOT NULL, store TEXT NOT NULL,
        session TEXT NOT NULL, message TEXT NOT NULL, title TEXT NOT NULL, kind TEXT, outcome TEXT NOT NULL,
        edits INTEGER NOT NULL, detail TEXT NOT NULL, actions TEXT NOT NULL,
        session_state TEXT NOT NULL, rules_version INTEGER NOT NULL, sole INTEGER);
INSERT INTO "recovery" VALUES(1,'r1111aaaa',1790000001.0,'/s','ses_1','msg_1','First','empty_content','healed',1,'Filled 1 gap with a placeholder','["placeholder"]','s',1,NULL);
INSERT INTO "recovery" VALUES(2,'r2222bbbb',1790000002.0,'/s','ses_2','msg_2',X'5365636F6E6420EDA0BD',NULL,'not_understood',0,'No.','[]','',1,NULL);
CREATE TABLE seen (
        store TEXT NOT NULL, session TEXT NOT NULL, stamp TEXT NOT NULL, PRIMARY KEY (store, session)) WITHOUT ROWID;
INSERT INTO "seen" VALUES('/s','ses_1','1:2');
CREATE INDEX recovery_session ON recovery (store, session, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('recovery',2);
COMMIT;
PRAGMA application_id = 1919119222;
PRAGMA user_version = 1;
