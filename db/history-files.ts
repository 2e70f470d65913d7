/** Files of the public history, as they were when they were first built. */
import type { Selectable } from 'kysely'
import type { HistoryKind } from '../domain/market-data/history-kind.ts'
import type { Db, Tx } from './client.ts'
import type { HistoryFilesTable } from './history-schema.ts'

export interface FileKey {
  readonly kind: HistoryKind
  readonly marketId: number
  /** Its start. */
  readonly day: number
}

export type StoredFile = Selectable<HistoryFilesTable>

export const storedFile = (db: Db | Tx, { kind, marketId, day }: FileKey): Promise<StoredFile | undefined> =>
  db
    .selectFrom('history_files')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('day', '=', day)
    .where('kind', '=', kind)
    .executeTakeFirst()

/** The files of the markets and days, in no order. */
export const storedFiles = (
  db: Db | Tx,
  {
    marketIds,
    from,
    to,
  }: { readonly marketIds: readonly number[]; readonly from: number; readonly to: number },
): Promise<StoredFile[]> =>
  db
    .selectFrom('history_files')
    .selectAll()
    .where('market_id', 'in', marketIds)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .execute()

/** Stores the file unless it was built before. Returns the first build, which another process may have stored meanwhile. */
export async function storeFile(db: Db, file: StoredFile): Promise<StoredFile> {
  await db
    .insertInto('history_files')
    .values(file)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const { kind, market_id: marketId, day } = file
  return (await storedFile(db, { kind, marketId, day })) as StoredFile
}

/** Another compressor has made another file of the same content. */
export const storeCompressed = (db: Db, { kind, market_id, day, sha256, size }: StoredFile) =>
  db
    .updateTable('history_files')
    .set({ sha256, size })
    .where('market_id', '=', market_id)
    .where('day', '=', day)
    .where('kind', '=', kind)
    .execute()
