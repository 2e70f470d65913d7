/** One run of commands on a market in a real database, with the keeper's and the indexer's own code, and on the model beside it. */
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import type { Fence } from '../../../db/fence.ts'
import { readRows } from '../../../db/journal.ts'
import { minedPosition } from '../../../db/positions.ts'
import { batchBasis } from '../../../domain/auction/action-basis.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { type MarketSpec, priceOf } from '../../../domain/market/market.ts'
import { aliveUntil, isAlwaysReduceOnly, isConditional } from '../../../domain/orders/order.ts'
import { reservedPriceOf } from '../../../domain/orders/reservation.ts'
import type { Culprit } from '../../../domain/settlement/void-batch.ts'
import type { Seconds, Ticks } from '../../../domain/units.ts'
import { ask } from '../../../keeper/engine/link/engine.ts'
import { createVoids } from '../../../keeper/settlement/store.ts'
import { voidFrom } from '../../../keeper/settlement/void-batches.ts'
import { withMirror } from '../../support/mirror.ts'
import { ModelLiquidations } from '../../support/model-liquidations.ts'
import { Model } from '../../support/order-model.ts'
import type { ModelOrder, Observed } from '../../support/order-model-terms.ts'
import { addressOf, MarketFixture, SILENT_LOGGER, type Trader } from './market-fixture.ts'
import { restrictMarket } from './market-mode.ts'
import { unminePart } from './mine-block.ts'
import { mineOldestPart } from './mine-part.ts'
import { type Command, type Place, type Protect, TRADERS } from './model-commands.ts'
import { revokeKey } from './revoke-key.ts'
import { SteppedKeeper } from './stepped-keeper.ts'

const keyOf = (trader: number): Wallet => new Wallet(id(`session key ${trader}`))

export class ModelRun {
  readonly fixture: MarketFixture
  readonly model: Model
  readonly liquidations: ModelLiquidations
  readonly counts = { revoked: 0, fired: 0, reorgs: 0, voided: 0, cuts: 0 }
  readonly #middle: number
  readonly #traders: Trader[] = []
  readonly #armed = new Map<number, number>()
  readonly #fences = new Map<string, Fence>()
  #keeper!: SteppedKeeper
  /** The newest rank at the last auction. */
  #standing = 0
  #price = 0
  /** Each block: a part, or the revocation of a key. */
  readonly #chain: string[] = []

  private constructor(fixture: MarketFixture, middle: number) {
    this.fixture = fixture
    this.#middle = middle
    this.model = new Model(fixture.spec)
    this.liquidations = new ModelLiquidations(fixture.spec, this.model)
  }

  /** Traders with so little that some orders must go when a position or a price moves. */
  static async open(spec: MarketSpec, middle: number, funds: string): Promise<ModelRun> {
    const run = new ModelRun(await MarketFixture.open(spec), middle)
    await run.#report(0)
    for (let at = 0; at < TRADERS; at++) run.#traders.push(await run.fixture.trader(`trader ${at}`, funds))
    for (const name of ['settle']) run.#fences.set(name, await run.fixture.lease(name))
    run.#keeper = new SteppedKeeper(run.fixture)
    run.model.observe(await run.#observed())
    return run
  }

  async take(command: Command): Promise<void> {
    const { fixture } = this
    switch (command.kind) {
      case 'place':
        return this.#place(command)
      case 'deal':
        return this.#deal(command.buyer, command.seller, command.steps)
      case 'close':
        return this.#close(command.by, command.next)
      case 'protect':
        return this.#protect(command)
      case 'cancel':
        return this.#cancel(command.pick)
      case 'step':
        return this.#step()
      case 'cut':
        return this.#cut(command.at)
      case 'restart':
        this.#keeper = new SteppedKeeper(this.fixture)
        return
      case 'wait':
        fixture.clock.value += command.ms
        return
      case 'price':
        fixture.clock.value += 1
        return this.#report(command.offset)
      case 'force':
        return this.#force(command.towards, command.steps)
      case 'halt':
      case 'open':
        return restrictMarket(fixture, command.kind === 'open' ? 'open' : 'halted')
      case 'mine':
        return this.#mine()
      case 'reorg':
        return this.#reorg()
      case 'fail':
        return this.#fail(command.culprit)
      case 'revoke':
        return this.#revoke(command.by)
      case 'arm':
        return this.#arm(command.by, command.seconds)
      case 'fire':
        return this.#fire()
    }
  }

  /** Every order, and what every account holds back, is what the model says. */
  async compare(): Promise<void> {
    const stored = await this.fixture.orders()
    const told = stored.map((order) => ({
      ...{
        id: order.orderId,
        status: order.status,
        reason: order.statusReason,
        leaving: order.closingReason,
      },
      ...{ filled: order.filled, settling: order.settling, openable: order.openable },
      ...{ reserved: order.reserved, held: order.held },
    }))
    const expected = this.model.orders.map((order) => ({
      ...{ id: order.id, status: order.status, reason: order.reason, leaving: order.leaving },
      ...{ filled: order.filled, settling: order.settling, openable: order.openable },
      ...{ reserved: this.model.reserved(order), held: order.held },
    }))
    const byId = (a: { id: string }, b: { id: string }) => a.id.localeCompare(b.id)
    expect(told.sort(byId)).to.deep.equal(expected.sort(byId))
    for (const { user_id, reserved } of await withMirror(this.fixture.db)
      .selectFrom('accounts')
      .selectAll()
      .execute()) {
      expect(reserved, `reserved of ${user_id}`).to.equal(this.model.reservedOf(user_id))
    }
  }

  // ---------------------------------------------------------------------- the api's commands

  async #place(command: Place): Promise<void> {
    const { clock, spec } = this.fixture
    const by = this.#traders[command.by] as Trader
    const { type, side, steps, leverage, keyLife } = command
    const now = Math.floor(clock.value / 1000)
    const limit = type.endsWith('MARKET') ? 0 : this.#middle + command.limit
    const trigger = isConditional(type) ? this.#middle + command.trigger : 0
    const reduceOnly = command.reduceOnly || isAlwaysReduceOnly(type)
    const expiration = command.life === 0 ? 0 : now + command.life
    const signing = keyLife === null ? {} : { signer: keyOf(command.by), keyExpiresAt: now + keyLife }
    const placement = { by, side, type, steps, limit, trigger, leverage, reduceOnly, expiration, ...signing }
    const orderId = await this.fixture.place(placement)
    const keyExpiresAt = keyLife === null ? null : ((now + keyLife) as Seconds)
    const terms = { side, type, price: limit as Ticks, trigger: trigger as Ticks }
    const order = this.model.place({
      ...{ id: orderId, account: by.account, side, type, price: limit, trigger, quantity: steps, leverage },
      ...{ reduceOnly, expiration, acceptedAt: clock.value },
      signer: addressOf(signing.signer ?? by.wallet),
      aliveUntil: aliveUntil(expiration as Seconds, keyExpiresAt),
      status: isConditional(type) ? 'PENDING_TRIGGER' : 'OPEN',
      reservedPrice: reservedPriceOf(spec, terms, priceBand(spec, priceOf(spec, this.#price as Ticks))),
    })
    const { free } = await withMirror(this.fixture.db)
      .selectFrom('accounts')
      .select('free')
      .where('user_id', '=', by.account)
      .executeTakeFirstOrThrow()
    if (this.model.reservedOf(by.account) <= free) return
    await this.fixture.cancel(orderId)
    this.model.leave(order, 'USER_CANCELLED')
  }

  async #deal(buyer: number, seller: number, steps: number): Promise<void> {
    const limit = this.#price - this.#middle
    const order = {
      kind: 'place',
      type: 'LIMIT',
      steps,
      limit,
      trigger: 0,
      reduceOnly: false,
      life: 0,
    } as const
    await this.#place({ ...order, by: buyer, side: 'LONG', leverage: 5, keyLife: null })
    await this.#place({ ...order, by: seller, side: 'SHORT', leverage: 3, keyLife: null })
    await this.#step()
  }

  /** The order can rest: on the far side of the price. */
  async #protect({ by, side, type, steps, offset }: Protect): Promise<void> {
    const size = this.model.sizeOf((this.#traders[by] as Trader).account)
    const against = size === 0 ? side : size > 0 ? 'SHORT' : 'LONG'
    const away = against === 'SHORT' ? offset : -offset
    const order = { kind: 'place', by, side: against, type, steps, limit: away, trigger: away } as const
    await this.#place({ ...order, leverage: 1, reduceOnly: true, life: 0, keyLife: null })
  }

  async #close(by: number, next: 'mine' | 'wait' | 'fail'): Promise<void> {
    const size = this.model.sizeOf((this.#traders[by] as Trader).account)
    if (size === 0) return
    const other = (by + 1) % TRADERS
    await this.#deal(size > 0 ? other : by, size > 0 ? by : other, Math.abs(size))
    if (next === 'fail') return this.take({ kind: 'fail', culprit: 3 })
    if (next === 'wait') return
    for (const _ of [...this.model.queue]) await this.take({ kind: 'mine' })
  }

  async #cancel(pick: number): Promise<void> {
    const order = this.model.orders[pick % Math.max(1, this.model.orders.length)]
    if (order === undefined || order.forced) return
    expect(await this.fixture.cancel(order.id)).to.equal(this.model.isLive(order))
    if (this.model.isLive(order)) this.model.leave(order, 'USER_CANCELLED')
  }

  async #arm(by: number, seconds: number): Promise<void> {
    const { account } = this.#traders[by] as Trader
    const command = { kind: 'set_switch', userId: account, timeoutSeconds: seconds } as const
    const answer = await ask<'set_switch'>(this.fixture.engine, command, 10_000)
    if (answer.kind !== 'done' || answer.fireAt === null) throw new Error('the switch is not armed')
    this.#armed.set(account, answer.fireAt)
  }

  // ---------------------------------------------------------------------- the keeper

  async #step(): Promise<void> {
    const { db, spec, clock } = this.fixture
    clock.value += 200
    const keeper = this.#keeper
    const before = await keeper.snapshot()
    const isAllowed = (): boolean => {
      const { rules, turn } = keeper.memory
      return batchBasis(spec, { rules, pace: turn.pace }, before, clock.now()) !== null
    }
    const mayTrigger = isAllowed()
    if (keeper.memory.turn.standingSeq === null) this.#standing = before.lastBatchHead
    const crashesAfterTriggers = await keeper.step()
    const mayMatch = isAllowed()
    const rows = await readRows(db, marketShard(spec.marketId), before.head, 1_000_000)
    const prices = rows.map(({ row }) => row).find((row) => row.kind === 'prices_updated')
    const { last_batch_id: batchId } = await db
      .selectFrom('markets')
      .select('last_batch_id')
      .executeTakeFirstOrThrow()
    this.model.step({
      ...{
        now: clock.value,
        mayTrigger,
        mayMatch,
        batchId,
        crashesAfterTriggers,
        standing: this.#standing,
      },
      liquidate: () => this.liquidations.apply(rows.map(({ row }) => row)),
      mark: prices?.kind === 'prices_updated' ? BigInt(prices.mark_price) : null,
      oracle: priceOf(spec, this.#price as Ticks),
    })
    if (mayMatch && !crashesAfterTriggers) this.#standing = this.model.newest
  }

  async #force(towards: 1 | -1, steps: number): Promise<void> {
    const price = this.liquidations.forcingPrice(this.#middle, towards)
    if (price === null) return
    await this.take({ kind: 'price', offset: price - this.#middle })
    for (let step = 0; step < steps; step++) await this.#step()
    await this.take({ kind: 'price', offset: 0 })
    await this.#step()
  }

  async #cut(at: 1 | 2): Promise<void> {
    this.#keeper.cutAt = at
    await this.#step()
    // A step with fewer transactions was not cut.
    if (this.#keeper.cutAt === 0) this.counts.cuts++
    this.#keeper = new SteppedKeeper(this.fixture)
  }

  async #fire(): Promise<void> {
    const { fixture } = this
    await ask<'fire_switches'>(fixture.engine, { kind: 'fire_switches', due: [] }, 10_000)
    for (const [account, fireAt] of this.#armed) {
      if (fireAt > fixture.clock.value) continue
      this.#armed.delete(account)
      this.counts.fired++
      this.model.leaveAll(
        (order) => order.account === account && order.acceptedAt <= fireAt && !order.forced,
        'DEAD_MAN_SWITCH',
      )
    }
  }

  /** The oldest unmined part fails for a reason that names an order, an account, or no party. */
  async #fail(choice: number): Promise<void> {
    const { fixture, model } = this
    const first = model.queue[0]
    if (first === undefined) return
    const queueNo = await this.#oldestAction()
    const blamed = (first.fills[0] as (typeof first.fills)[number]).order
    const maker = addressOf(
      (this.#traders.find(({ account }) => account === blamed.account) as Trader).wallet,
    )
    const salt = BigInt((await fixture.orderOf(blamed.id)).salt)
    const culprits: readonly [Culprit, (order: ModelOrder) => boolean][] = [
      [{ kind: 'order', maker, salt, error: 'OrderDead' }, (order) => order === blamed],
      [
        { kind: 'account', maker, error: 'MarginInsufficient' },
        (order) => order.account === blamed.account && first.fills.some((fill) => fill.order === order),
      ],
      [{ kind: 'unnamed', error: 'HeaderInvalid' }, () => false],
      [{ kind: 'late', error: 'late' }, () => false],
    ]
    const [culprit, isCulprit] = culprits[choice] as (typeof culprits)[number]
    const ports = {
      voids: createVoids({ db: fixture.db, engine: fixture.engine }),
      clock: fixture.clock,
      logger: SILENT_LOGGER,
    }
    await voidFrom(ports, fixture.spec, this.#fences.get('settle') as Fence, {
      queueNo,
      cause: culprit,
      reverted: null,
    })
    model.voidBatches(fixture.clock.value, isCulprit)
    this.counts.voided++
  }

  async #oldestAction(): Promise<number> {
    const { queue_no } = await this.fixture.db
      .selectFrom('actions')
      .select('queue_no')
      .where('status', 'in', ['QUEUED', 'SIGNED', 'SUBMITTED'])
      .orderBy('queue_no')
      .executeTakeFirstOrThrow()
    return queue_no
  }

  // ---------------------------------------------------------------------- the chain and the oracle

  async #report(offset: number): Promise<void> {
    this.#price = this.#middle + offset
    await this.fixture.report(this.#price)
  }

  async #observed(): Promise<Observed> {
    const accounts = await withMirror(this.fixture.db).selectFrom('accounts').selectAll().execute()
    const positions = await withMirror(this.fixture.db).selectFrom('positions').selectAll().execute()
    return {
      free: new Map(accounts.map(({ user_id, free }) => [user_id, free])),
      mined: new Map(positions.map((row) => [row.user_id, minedPosition(row)])),
    }
  }

  async #mine(): Promise<void> {
    if (!(await mineOldestPart(this.fixture))) return
    this.#chain.push('part')
    this.model.mine(await this.#observed())
  }

  async #reorg(): Promise<void> {
    if (this.model.mined.length === 0) return
    await unminePart(this.fixture.db)
    // Revocations behind the part left the chain with it and are mined again, and then end what their keys have signed since.
    const at = this.#chain.lastIndexOf('part')
    const [, ...revoked] = this.#chain.splice(at)
    this.#chain.push(...revoked)
    const leave = () => this.model.leaveAll(({ signer }) => revoked.includes(signer), 'SIGNER_REVOKED')
    leave()
    this.model.unmine(await this.#observed())
    leave()
    this.counts.reorgs++
  }

  async #revoke(by: number): Promise<void> {
    const owner = addressOf((this.#traders[by] as Trader).wallet)
    const key = addressOf(keyOf(by))
    const { db, clock, spec } = this.fixture
    await revokeKey(db, spec, { owner, key, timestamp: Math.floor(clock.value / 1000) })
    this.#chain.push(key)
    this.counts.revoked++
    this.model.leaveAll(({ signer }) => signer === key, 'SIGNER_REVOKED')
  }
}
