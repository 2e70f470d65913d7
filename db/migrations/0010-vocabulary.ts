import { type Kysely, sql } from 'kysely'

/** Statuses and journal rows that carry the old word. Voided batches are rare, so few rows change; the journal is scanned once. */
const reword = (journal: string, from: string, to: string) =>
  sql.raw(`
    update actions set status = upper('${to}') where status = upper('${from}');
    update batches set status = upper('${to}') where status = upper('${from}');
    update ${journal} set row = regexp_replace(row::text, '("kind"\\s*:\\s*)"batch_${from}"', '\\1"batch_${to}"')::json
      where row::text ~ '"kind"\\s*:\\s*"batch_${from}"';
  `)

/** One word per idea: a shard's `journal`, the faucet's requests, and batches that are voided. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table shard_log rename to journal;
    alter index shard_log_pkey rename to journal_pkey;
    alter table relay_requests rename to faucet_requests;
    alter index relay_requests_pkey rename to faucet_requests_pkey;
    alter index relay_requests_open rename to faucet_requests_open;
    ${reword('journal', 'unwound', 'voided')}
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    ${reword('journal', 'voided', 'unwound')}
    alter index faucet_requests_open rename to relay_requests_open;
    alter index faucet_requests_pkey rename to relay_requests_pkey;
    alter table faucet_requests rename to relay_requests;
    alter index journal_pkey rename to shard_log_pkey;
    alter table journal rename to shard_log;
  `.execute(db)
}
