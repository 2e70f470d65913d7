/** Faults of the exchange's state and decisions, which trading in the simulation finds. */
import type { Fault } from '../fault.ts'

const inFile =
  (file: string) =>
  (name: string, passage: string, replacement: string, seed: number): Fault => ({
    name,
    scenario: 'trading',
    file,
    passage,
    replacement,
    seed,
  })

const inDecision = inFile('domain/exchange/decide/orders/decide-orders.ts')
const inPlacement = inFile('domain/exchange/decide/orders/place.ts')
const inCancel = inFile('domain/exchange/decide/orders/cancel.ts')
const inReplacement = inFile('domain/exchange/decide/orders/replace.ts')
const inAuction = inFile('domain/auction/auction-turn.ts')
const inBrackets = inFile('domain/orders/brackets.ts')
const inTranches = inFile('domain/auction/tranches.ts')
const inRequests = inFile('domain/exchange/decide/orders/requests.ts')
const inOrders = inFile('domain/exchange/apply/orders.ts')
const inRows = inFile('domain/exchange/applied-rows.ts')
const inDraft = inFile('domain/exchange/draft.ts')
const inUndo = inFile('domain/exchange/undo-log.ts')
const inBatches = inFile('domain/exchange/apply/batches.ts')
const inTable = inFile('domain/exchange/record-table.ts')
const inIndex = inFile('domain/exchange/order-index.ts')
const inAccounts = inFile('domain/exchange/apply/change.ts')

export const TRADING_FAULTS: readonly Fault[] = [
  inOrders(
    'a placement reserves nothing of the account',
    '  state.signatures.put(acceptedSignature(marketId, row))\n  addFunds(state, row.user_id, { reserved: BigInt(row.reserved) })\n',
    '  state.signatures.put(acceptedSignature(marketId, row))\n',
    1,
  ),
  inOrders(
    'a cancel releases nothing of the account',
    '  addFunds(state, row.user_id, { reserved: BigInt(row.reserved_delta) })\n',
    '',
    1,
  ),
  inAccounts(
    'a change of funds is applied twice',
    'reserved: (before.reserved + reserved) as Quote',
    'reserved: (before.reserved + 2n * reserved) as Quote',
    1,
  ),
  inPlacement(
    'a used salt is accepted',
    'if (known !== undefined) return duplicate(state, inputs, { order, flags, known })\n',
    '',
    1,
  ),
  inPlacement(
    'a used label is accepted',
    'if (labelled !== undefined) {',
    'if (labelled !== undefined && labelled.account !== userId) {',
    1,
  ),
  inPlacement(
    'margin of resting orders counts as available',
    'available: (free - reserved) as Quote',
    'available: free as Quote',
    1,
  ),
  inDecision(
    'a refused item leaves the others of an atomic command',
    "({ kind }) => kind === 'done'",
    "({ kind }) => kind === 'done' || kind === 'refused'",
    1,
  ),
  inDecision(
    'items of an atomic command are decided singly',
    'const refused = isAtomic ? refusedItems(results) : []',
    'const refused = isAtomic && results.length > 3 ? refusedItems(results) : []',
    1,
  ),
  inDecision(
    'the result of a request is not stored',
    'if (request !== null) draft.write(ACCOUNTS, requestRow(userId, request, done, inputs.now))\n',
    '',
    1,
  ),
  inPlacement(
    'the bookmark of a placement names the row before it',
    'readAfter: { marketId, seq: draft.write(marketId, row) },',
    'readAfter: { marketId, seq: (draft.write(marketId, row) - 1) as Seq },',
    1,
  ),
  inRequests(
    'a repeated request is executed again',
    'if (known !== undefined) {',
    'if (known !== undefined && known.digest !== digest) {',
    1,
  ),
  inCancel(
    'a cancel is answered and not written',
    '  const seq = draft.write(marketId, row)\n',
    '  const seq = draft.nextSeq(marketId)\n',
    1,
  ),
  inRows(
    'a rollback misses the rows of an execution',
    'this.#before.push({ mark: marks[at] as number, time: this.#time })',
    'this.#before.push({ mark: this.state.core.undo.mark, time: this.#time })',
    15,
  ),
  inDraft(
    'the last row of an execution is not applied',
    '    this.#applyPending()\n    return { entries',
    '    return { entries',
    1,
  ),
  inDraft(
    'rows of a refused attempt stay',
    'if (!kept) this.#takeBack(before)',
    'if (!kept && before > 0) this.#takeBack(before)',
    1,
  ),
  inUndo(
    'the undo of a row leaves its oldest change',
    'while (this.mark > mark) (this.#steps.pop() as UndoStep)()',
    'while (this.mark > mark + 1) (this.#steps.pop() as UndoStep)()',
    1,
  ),
  inUndo(
    'changes are taken back oldest first',
    'while (this.mark > mark) (this.#steps.pop() as UndoStep)()',
    'while (this.mark > mark) (this.#steps.splice(mark - this.#forgotten, 1)[0] as UndoStep)()',
    1,
  ),
  inIndex(
    'an ended order keeps its label',
    'if (labelHash !== 0) this.#byLabel.remove(this.#hashOfLabelled(account, labelHash), slot)',
    '',
    1,
  ),
  inIndex(
    'orders are not found by hash after an undo',
    '    if (after === undefined) return\n    this.#byHash.add(',
    '    if (after === undefined || before !== undefined || slot % 7 === 0) return\n    this.#byHash.add(',
    1,
  ),
  inTable(
    'a removed record stays in the digest',
    "    this.#hash(slot, 'subtract')\n    this.#index.remove(hashOfCounts(key), slot)\n",
    '    this.#index.remove(hashOfCounts(key), slot)\n',
    1,
  ),
  inBatches(
    'a fill leaves its steps in the book',
    'settling: (order.settling + fill.steps) as Steps,',
    'settling: order.settling,',
    1,
  ),
  inBatches(
    'a fill holds nothing of the reservation',
    'held: (order.held + held) as Quote,\n    partialSlot,\n  })\n  state.fills',
    'held: order.held,\n    partialSlot,\n  })\n  state.fills',
    1,
  ),
  inBatches(
    'the matched positions of a batch are not set',
    '  setMatched(state, place, matched)\n  queueParts',
    '  queueParts',
    1,
  ),
  inReplacement(
    'a replaced order does not end',
    'const seq = draft.write(marketId, row)\n',
    'const seq = draft.lastSeq(marketId)\n',
    1,
  ),
  inReplacement(
    'a refused replacement ends the old order',
    "    ({ kind }) => kind === 'placed',\n",
    '    () => true,\n',
    2,
  ),
  inPlacement(
    'a post-only order may cross',
    'const taking = flags.postOnly ? takeRefusal(input.value.spec, order, state.books.of(marketId)) : null\n',
    'const taking = null\n',
    1,
  ),
  inAuction(
    'an ioc order stays after its auction',
    '  return ioc.filter(ends)',
    '  return ioc.filter((order) => !ends(order))',
    7,
  ),
  inBrackets(
    'exits stay when their entry ends',
    "  if (hasLostEntry && entries.length === 0) return ends(exits, 'ENTRY_ENDED')\n",
    '',
    1,
  ),
  inBatches(
    'exits stay dormant when their entry matches',
    '  if (order.bracket > 0 && !isExit(order)) wakeExits(state, order)\n',
    '',
    2,
  ),
  inTranches(
    'two closes each get the whole position',
    '    reducible = (reducible - reducing) as Steps\n',
    '',
    3,
  ),
]
