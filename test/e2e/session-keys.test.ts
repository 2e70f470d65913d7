/** The life of a session key on a running exchange, with crashes of each process, lost answers and a fork. */
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { ClearbatchError } from '../../client/errors.ts'
import type { SessionKeyOperation } from '../../client/session-keys.ts'
import { sessionSigner } from '../../client/signers/session-key-signer.ts'
import type { Managed } from '../../stack/supervisor.ts'
import { AccountManager__factory } from '../../typechain-types/factories/AccountManager__factory.ts'
import { replaceFrom } from '../support/chain-faults.ts'
import { waitFor } from '../support/patience.ts'
import { lanesWithJobs } from './support/lane-jobs.ts'
import { isDone, nearOracle, useStack } from './support/stack.ts'

const KILLS = [
  ['api', 'after-relay-commit'],
  ['keeper', 'after-relay-storing'],
  ['keeper', 'after-broadcast'],
  ['indexer', 'after-block-commit'],
] as const

describe('session keys on a running exchange', function () {
  this.timeout(120_000)
  const exchange = useStack()

  /** A client of the account that signs orders with the key. */
  function tradingWith(index: number, key: Wallet): Client {
    const { base_url: baseUrl, accounts } = exchange.stack.file
    const { address, api_key: apiKey } = accounts[index] as (typeof accounts)[number]
    return new Client({
      baseUrl,
      address,
      apiKey,
      orderSigner: sessionSigner(key.privateKey),
      http: { budgetMs: 5_000 },
    })
  }
  const newKey = () => new Wallet(Wallet.createRandom().privateKey)
  const keyOnChain = async (index: number, key: Wallet) => {
    const { provider, file } = exchange.stack
    const manager = AccountManager__factory.connect(file.contracts.account_manager, provider)
    return manager.sessionKey(file.accounts[index]?.address as string, key.address)
  }
  const listed = async (index: number, key: Wallet) => {
    const { session_keys: keys } = await exchange.trader(index).sessionKeys.list()
    return keys.find(({ session_public_address }) => session_public_address === key.address.toLowerCase())
  }
  const operationsOf = (key: Wallet) =>
    exchange.stack.db
      .selectFrom('relay_operations')
      .select(['status', 'tx_hash'])
      .where('session_key', '=', key.address.toLowerCase())
      .execute()
  const refusalOf = (work: Promise<unknown>): Promise<string | null> =>
    work.then(
      () => 'accepted',
      (error: unknown) => (error instanceof ClearbatchError ? error.code : String(error)),
    )

  it('when a key is registered, its orders settle; once its revocation is requested none is accepted, and open ones end with it', async () => {
    const [owner, other] = [exchange.trader(0), exchange.trader(1)]
    const key = newKey()
    const trader = tradingWith(0, key)
    const price = await nearOracle(owner, 1, 1)
    const order = { marketId: 1, side: 'LONG', price, quantity: '0.01', leverage: 2 } as const
    expect(await refusalOf(trader.orders.place(order))).to.equal('SIGNATURE_MISMATCH')
    const registered = await owner.sessionKeys.register(key.address)
    expect(registered).to.include({ status: 'CONFIRMED', operation: 'register' })
    expect((await keyOnChain(0, key)).permissions).to.equal(3n)
    expect(await listed(0, key)).to.include({ status: 'ACTIVE', session_key_id: registered.session_key_id })

    const bought = await trader.orders.place(order)
    await other.orders.place({ ...order, side: 'SHORT' })
    expect((await trader.orders.waitFor(bought, isDone, 60_000)).status).to.equal('FILLED')
    const resting = await trader.orders.place({ ...order, price: await nearOracle(owner, 1, -20_000) })

    const { sessionKeys } = owner
    const revocation = await sessionKeys.sign(await sessionKeys.prepare('revoke', key.address))
    const relayed = await sessionKeys.relay(revocation)
    expect(await refusalOf(trader.orders.place({ ...order, side: 'SHORT' }))).to.be.oneOf([
      'SESSION_KEY_REVOKING',
      'SESSION_KEY_REVOKED',
    ])
    expect(await sessionKeys.waitFor(relayed)).to.include({ status: 'CONFIRMED' })
    expect((await keyOnChain(0, key)).revokedAt).to.not.equal(0n)
    expect(await listed(0, key)).to.include({ status: 'REVOKED' })
    const ended = await trader.orders.waitFor(resting, isDone, 30_000)
    expect(ended).to.include({ status: 'CANCELLED', status_reason: 'SIGNER_REVOKED' })
    expect(await refusalOf(trader.orders.place({ ...order, side: 'SHORT' }))).to.equal('SESSION_KEY_REVOKED')
    expect(await refusalOf(owner.sessionKeys.register(key.address))).to.equal('SESSION_KEY_REGISTERED')
    expect(await exchange.differences()).to.deep.equal([])
    expect(await lanesWithJobs(exchange.stack.db)).to.include.members(['relay', 'm1'])
  })

  for (const [name, point] of KILLS) {
    it(`when ${name} is killed at ${point} during a registration, it is registered once`, async () => {
      const killed: Managed = exchange.stack[name]
      const key = newKey()
      await killed.restart('SIGTERM', { CLEARBATCH_KILL_AT: point })
      const died = killed.nextEnd()
      await killed.ready()
      const registering = exchange.trader(2).sessionKeys.register(key.address)
      expect(await died).to.equal('SIGKILL')
      await killed.ready()
      const { status, tx_hash } = await registering
      expect(status).to.equal('CONFIRMED')
      expect(await operationsOf(key)).to.deep.equal([{ status: 'CONFIRMED', tx_hash }])
      expect((await keyOnChain(2, key)).permissions).to.equal(3n)
      expect(await listed(2, key)).to.include({ status: 'ACTIVE' })
    })
  }

  it('when the answer of a relay is lost, the operation is found by its id and by the same request', async () => {
    const key = newKey()
    const { sessionKeys } = exchange.trader(3)
    const signed = await sessionKeys.sign(await sessionKeys.prepare('register', key.address))
    expect(await refusalOf(sessionKeys.operation(signed.operation_id))).to.equal('OPERATION_NOT_FOUND')
    void sessionKeys.relay(signed)
    const found: SessionKeyOperation = await waitFor(
      async () => (await sessionKeys.operation(signed.operation_id).catch(() => null)) as SessionKeyOperation,
      (operation) => operation !== null,
    )
    expect((await sessionKeys.relay(signed)).operation_id).to.equal(found.operation_id)
    expect(await sessionKeys.waitFor(found)).to.include({ status: 'CONFIRMED' })
    expect(await operationsOf(key)).to.have.length(1)
  })

  it('when a fork removes a registration, the key is taken back, and the same transaction registers it again', async () => {
    const { provider, db } = exchange.stack
    const key = newKey()
    const { operation_id, tx_hash } = await exchange.trader(4).sessionKeys.register(key.address)
    const { block } = await db
      .selectFrom('relay_operations')
      .select('block')
      .where('operation_id', '=', operation_id)
      .executeTakeFirstOrThrow()
    await replaceFrom(provider, block as number)
    await waitFor(
      async () => (await provider.getTransactionReceipt(tx_hash as string))?.blockNumber ?? null,
      (again) => again !== null,
      { budgetMs: 60_000 },
    )
    const { sessionKeys } = exchange.trader(4)
    expect(await sessionKeys.waitFor({ operation_id })).to.include({ status: 'CONFIRMED', tx_hash })
    const changes = await db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', 'accounts')
      .orderBy('seq')
      .execute()
    const statuses = changes.flatMap(({ row }) =>
      row.kind === 'relay_changed' && row.operation_id === operation_id ? [row.status] : [],
    )
    expect(statuses).to.deep.equal(['QUEUED', 'RELAYING', 'CONFIRMED', 'RELAYING', 'CONFIRMED'])
    expect(await listed(4, key)).to.include({ status: 'ACTIVE' })
    expect((await keyOnChain(4, key)).permissions).to.equal(3n)
    expect(await exchange.differences()).to.deep.equal([])
  })
})
