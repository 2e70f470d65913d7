/** Challenges: texts in the form of EIP-4361. The owner's wallet signs each once, for one action of the account. */
import { randomUUID } from 'node:crypto'
import { generateNonce, SiweMessage } from '@signinwithethereum/siwe'
import { findChallenge, insertChallenge, takeChallenge } from '../../db/auth-challenges.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { AuthChallengesTable, ChallengeAction } from '../../db/credentials-schema.ts'
import type { Clock } from '../../service/clock.ts'
import type { WalletSigning } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { Caller } from './caller.ts'

export const CHALLENGE_LIFE_MS = 5 * 60_000

/** Statement that the wallet shows, and endpoint that receives the signature, by action. */
const ACTIONS: Readonly<Record<ChallengeAction, { readonly statement: string; readonly path: string }>> = {
  rotate_api_key: {
    statement:
      'Create an API key for this Clearbatch account. The current key stops working at once. This signature moves no funds.',
    path: '/v0/me/api-key/rotate',
  },
  create_api_key: {
    statement:
      'Create a further API key for this Clearbatch account. Its other keys keep working. This signature moves no funds.',
    path: '/v0/me/api-keys',
  },
}

export interface Challenges {
  create(caller: Caller, action: ChallengeAction): Promise<AuthChallengesTable>
  /**
   * The caller's open challenge. Throws if it is used or expired; unknown challenges and those of other accounts cause
   * the same error.
   */
  open(caller: Caller, challengeId: string, action: ChallengeAction): Promise<AuthChallengesTable>
  /** Uses the challenge in the transaction of its action. False if it is no longer open. */
  take(tx: Tx, challenge: AuthChallengesTable): Promise<boolean>
}

export interface ChallengePorts {
  readonly db: Db
  readonly clock: Clock
  readonly config: { readonly chainId: number; readonly walletSigning: WalletSigning }
}

export function createChallenges({ db, clock, config }: ChallengePorts): Challenges {
  const { domain, publicUrl } = config.walletSigning
  const messageOf = (address: string, challenge: Omit<AuthChallengesTable, 'message'>): string => {
    const { statement, path } = ACTIONS[challenge.action]
    return new SiweMessage({
      ...{ domain, address, statement, uri: `${publicUrl}${path}`, version: '1', chainId: config.chainId },
      nonce: generateNonce(),
      issuedAt: new Date(challenge.created_at).toISOString(),
      expirationTime: new Date(challenge.expires_at).toISOString(),
      requestId: challenge.challenge_id,
    }).prepareMessage()
  }
  return {
    async create({ userId, address, credential }, action) {
      const now = clock.now()
      const terms = {
        ...{ challenge_id: randomUUID() as string, user_id: userId, credential, action },
        ...{ created_at: now, expires_at: now + CHALLENGE_LIFE_MS, used_at: null },
      }
      const challenge = { ...terms, message: messageOf(address, terms) }
      await insertChallenge(db, challenge)
      return challenge
    },
    async open({ userId }, challengeId, action) {
      const field = 'challenge_id'
      const found = await findChallenge(db, userId, challengeId)
      if (found === undefined || found.action !== action) throw new ApiError('CHALLENGE_UNKNOWN', { field })
      if (found.used_at !== null) throw new ApiError('CHALLENGE_USED', { field })
      if (found.expires_at <= clock.now()) throw new ApiError('CHALLENGE_EXPIRED', { field })
      return found
    },
    take: (tx, { user_id: userId, challenge_id: challengeId, action }) =>
      takeChallenge(tx, { userId, challengeId, action, now: clock.now() }),
  }
}
