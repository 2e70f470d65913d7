/** The `auth_challenges` table: texts that an owner's wallet signs once. */
import { sql } from 'kysely'
import type { Db, Tx } from './client.ts'
import type { AuthChallengesTable, ChallengeAction } from './credentials-schema.ts'

/**
 * Challenges per account and kind of credential, used or not; a further one deletes the oldest of its kind. A stolen
 * API key therefore cannot delete the identity token's challenges.
 */
export const CHALLENGES_PER_CREDENTIAL = 5
/** After this time a challenge is deleted, used or not; until then its repeated use is explained. */
export const CHALLENGE_RETENTION_MS = 24 * 3_600_000
/** Old challenges of all accounts that one insertion deletes: more than it adds, so the table shrinks to the retention. */
const PRUNED = 10

export type NewChallenge = Omit<AuthChallengesTable, 'used_at'>

export async function insertChallenge(db: Db, challenge: NewChallenge): Promise<void> {
  await db.transaction().execute(async (tx) => {
    // Otherwise insertions that run at once would each keep the bound and exceed it together.
    await sql`select pg_advisory_xact_lock(hashtextextended('auth_challenges', ${challenge.user_id}::bigint))`.execute(
      tx,
    )
    await sql`
      delete from auth_challenges where challenge_id in (
        select challenge_id from auth_challenges
        where user_id = ${challenge.user_id} and credential = ${challenge.credential}
        order by created_at desc, challenge_id offset ${CHALLENGES_PER_CREDENTIAL - 1}
      )
    `.execute(tx)
    await tx
      .insertInto('auth_challenges')
      .values({ ...challenge, used_at: null })
      .execute()
    await sql`
      delete from auth_challenges where challenge_id in (
        select challenge_id from auth_challenges where created_at < ${challenge.created_at - CHALLENGE_RETENTION_MS}
        order by created_at limit ${PRUNED} for update skip locked
      )
    `.execute(tx)
  })
}

/** The account's challenge; undefined if it does not exist or belongs to another account. */
export const findChallenge = (
  db: Db | Tx,
  userId: number,
  challengeId: string,
): Promise<AuthChallengesTable | undefined> =>
  db
    .selectFrom('auth_challenges')
    .selectAll()
    .where('challenge_id', '=', challengeId)
    .where('user_id', '=', userId)
    .executeTakeFirst()

export interface ChallengeUse {
  readonly userId: number
  readonly challengeId: string
  readonly action: ChallengeAction
  readonly now: number
}

/**
 * Uses the challenge and ends the account's other open challenges for the action; false if used, expired or unknown.
 * Locks have one order, so one of several concurrent uses succeeds.
 */
export async function takeChallenge(
  tx: Tx,
  { userId, challengeId, action, now }: ChallengeUse,
): Promise<boolean> {
  const open = await tx
    .selectFrom('auth_challenges')
    .select(['challenge_id', 'used_at', 'expires_at'])
    .where('user_id', '=', userId)
    .where('action', '=', action)
    .orderBy('challenge_id')
    .forUpdate()
    .execute()
  const mine = open.find(({ challenge_id }) => challenge_id === challengeId)
  if (mine === undefined || mine.used_at !== null || mine.expires_at <= now) return false
  await tx
    .updateTable('auth_challenges')
    .set({ used_at: now })
    .where('user_id', '=', userId)
    .where('action', '=', action)
    .where('used_at', 'is', null)
    .execute()
  return true
}
