/** Prepares accounts for trading: gas and USDM in the wallet, a deposit at the bank, a user, and an API key. */
import { JsonRpcProvider, NonceManager, Wallet } from 'ethers'
import { rotateApiKey } from '../client/api-keys.ts'
import { signIn } from '../client/sign-in.ts'
import type { Db } from '../db/client.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import { TestUSDM__factory } from '../typechain-types/factories/TestUSDM__factory.ts'
import type { Key } from './keys.ts'
import { StackError } from './options.ts'
import type { StackAccount } from './stack-file.ts'

const GAS = 10n ** 20n

/** Chain to fund accounts on, and the paying key. */
export interface Funding {
  readonly provider: JsonRpcProvider
  readonly deployer: Key
  readonly usdm: string
  readonly marginBank: string
}

/** Polls every 100 ms, because the local chain mines a block per transaction. */
export const localProvider = (url: string, chainId: number): JsonRpcProvider =>
  new JsonRpcProvider(url, chainId, { staticNetwork: true, pollingInterval: 100, cacheTimeout: -1 })

/** Sets balances by an RPC method that only the local chain has. */
export async function fundGas(provider: JsonRpcProvider, addresses: readonly string[]): Promise<void> {
  await Promise.all(
    addresses.map((address) => provider.send('anvil_setBalance', [address, `0x${GAS.toString(16)}`])),
  )
}

/** Amounts are USDM wei. Skips accounts that have a free balance or a withdrawal request at the bank. */
export async function fund(
  { provider, deployer, usdm, marginBank }: Funding,
  keys: readonly Key[],
  amounts: { readonly wallet: bigint; readonly deposit: bigint },
): Promise<void> {
  const signer = new NonceManager(new Wallet(deployer.privateKey, provider))
  const token = TestUSDM__factory.connect(usdm, signer)
  const bank = MarginBank__factory.connect(marginBank, signer)
  const accounts = await Promise.all(keys.map(({ address }) => bank.account(address)))
  const missing = keys.filter(
    (_, index) => accounts[index]?.free === 0n && accounts[index]?.requestedAt === 0n,
  )
  if (missing.length === 0) return

  await fundGas(
    provider,
    missing.map(({ address }) => address),
  )
  const total = amounts.deposit * BigInt(missing.length)
  await (await token.mint(deployer.address, total)).wait()
  await (await token.approve(marginBank, total)).wait()
  const sent = []
  for (const { address } of missing) {
    sent.push(await token.mint(address, amounts.wallet))
    sent.push(await bank.depositFor(address, amounts.deposit))
  }
  await Promise.all(sent.map((transaction) => transaction.wait()))
}

const USER_LIMIT_MS = 30_000

/** URLs at which accounts sign in and get their keys. */
export interface Entrance {
  readonly baseUrl: string
  readonly issuerUrl: string
}

/** Concurrent sign-ins. */
const AT_ONCE = 8

/**
 * Replaces each account's API key by sign-in, challenge and signature, like a trader. Waits until deposits are
 * ingested.
 */
export async function issueApiKeys(
  db: Db,
  entrance: Entrance,
  keys: readonly Key[],
): Promise<readonly StackAccount[]> {
  const accounts: StackAccount[] = []
  for (let at = 0; at < keys.length; at += AT_ONCE)
    accounts.push(
      ...(await Promise.all(keys.slice(at, at + AT_ONCE).map((key) => issueApiKey(db, entrance, key)))),
    )
  return accounts
}

async function issueApiKey(
  db: Db,
  { baseUrl, issuerUrl }: Entrance,
  { address, privateKey }: Key,
): Promise<StackAccount> {
  await userOf(db, address)
  const wallet = new Wallet(privateKey)
  const { accessToken } = await signIn({ issuerUrl, wallet })
  const { user_id, api_key } = await rotateApiKey({ baseUrl, authorization: `Bearer ${accessToken}`, wallet })
  return { address, private_key: privateKey, user_id, api_key }
}

/** Waits for the user that the indexer creates at the first deposit. */
export async function userOf(db: Db, address: string): Promise<number> {
  const deadline = Date.now() + USER_LIMIT_MS
  for (;;) {
    const row = await db
      .selectFrom('users')
      .select('user_id')
      .where('address', '=', address.toLowerCase())
      .executeTakeFirst()
    if (row !== undefined) return row.user_id
    if (Date.now() > deadline)
      throw new StackError(
        `no user for ${address} after ${USER_LIMIT_MS} ms: the indexer has not ingested its deposit`,
      )
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
