/** `npm run verify-batch -- <url or file>`: verifies the proof of a batch. Exit code 0 only if everything holds. */

import { verifyBatch } from '../client/proof/verify-batch.ts'
import { orExit, parseArguments, rejectArguments, text } from '../service/command-line.ts'
import { readOwnOrder, readProof } from './read.ts'

const ADDRESS = /^0x[0-9a-fA-F]{40}$/

const COMMAND_LINE = {
  command: 'npm run verify-batch --',
  positionals: '<url or file>',
  flags: {
    rpc: text('<url>', "node of the market's chain: also compare with the settlement transactions"),
    trader: text('<address>', "address that the market's contract must have"),
    order: text(
      '<hash or file>',
      'an own order that must be in the batch: its hash, or the answer to its placement',
    ),
    salt: text('<salt>', 'its salt, from GET /v0/orders/:order_id/commitment'),
  },
} as const

function optionsOf() {
  const { positionals, rpc, trader, order, salt } = parseArguments(COMMAND_LINE, process.argv.slice(2))
  const [source, more] = positionals
  if (source === undefined || more !== undefined)
    return rejectArguments(
      COMMAND_LINE,
      `expected one URL or file; received ${positionals.join(' ') || 'none'}`,
    )
  if ((order === undefined) !== (salt === undefined))
    return rejectArguments(COMMAND_LINE, '--order and --salt are given together or not at all')
  if (trader !== undefined && !ADDRESS.test(trader))
    return rejectArguments(
      COMMAND_LINE,
      `--trader is an address, 0x and 40 hexadecimal digits; received ${trader}`,
    )
  return { source, rpc, trader, own: order === undefined || salt === undefined ? undefined : { order, salt } }
}

const options = orExit(optionsOf)
process.exitCode = await run()

async function run(): Promise<number> {
  try {
    const { source, rpc, trader, own } = options
    const { lines, problems } = await verifyBatch({
      ...(await readProof(source)),
      rpc,
      trader,
      own: own && { order: await readOwnOrder(own.order), salt: own.salt },
    })
    for (const line of lines) console.log(line)
    for (const problem of problems) console.error(problem)
    console.log(
      problems.length === 0 ? 'the proof holds' : `the proof does not hold: ${problems.length} differences`,
    )
    return problems.length === 0 ? 0 : 1
  } catch (error) {
    console.error((error as Error).message)
    return 1
  }
}
