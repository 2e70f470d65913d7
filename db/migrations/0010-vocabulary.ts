import { type Kysely, sql } from 'kysely'

type Wording = 'before' | 'after'

/** Renamed values of journal fields. Few rows have them; each update scans the journal once. */
const JOURNAL_VALUES = [
  { field: 'kind', before: 'batch_unwound', after: 'batch_voided' },
  { field: 'cause', before: 'insolvent_listed', after: 'insolvency_reported' },
] as const

const rewordJournal = (from: Wording, to: Wording): string =>
  JOURNAL_VALUES.map(({ field, [from]: old, [to]: next }) => {
    const pattern = `("${field}"\\s*:\\s*)"${old}"`
    return `
      update journal set row = regexp_replace(row::text, '${pattern}', '\\1"${next}"')::json
      where row::text ~ '${pattern}';
    `
  }).join('')

const rewordStatus = (from: string, to: string): string => `
  update actions set status = '${to}' where status = '${from}';
  update batches set status = '${to}' where status = '${from}';
`

/** One word per idea: a shard's `journal`, the faucet's requests, voided batches, and reported insolvencies. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table shard_log rename to journal;
    alter index shard_log_pkey rename to journal_pkey;
    alter table relay_requests rename to faucet_requests;
    alter index relay_requests_pkey rename to faucet_requests_pkey;
    alter index relay_requests_open rename to faucet_requests_open;
    ${sql.raw(rewordStatus('UNWOUND', 'VOIDED'))}
    ${sql.raw(rewordJournal('before', 'after'))}
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    ${sql.raw(rewordJournal('after', 'before'))}
    ${sql.raw(rewordStatus('VOIDED', 'UNWOUND'))}
    alter index faucet_requests_open rename to relay_requests_open;
    alter index faucet_requests_pkey rename to relay_requests_pkey;
    alter table faucet_requests rename to relay_requests;
    alter index journal_pkey rename to shard_log_pkey;
    alter table journal rename to shard_log;
  `.execute(db)
}
