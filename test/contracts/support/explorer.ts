/** A block explorer for tests: it compiles submitted sources and compares them with the deployed code, as real ones do. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JsonRpcProvider } from 'ethers'
import solc from 'solc'

interface Submission {
  readonly address: string
  /** For example `contracts/MarginBank.sol:MarginBank`. */
  readonly name: string
  /** `exact`: to the last byte. `partial`: all but the hash of sources and settings at the end of the code. */
  readonly match: 'exact' | 'partial' | 'none'
  /** Set if nothing matches. */
  readonly problem?: string
}

export interface Explorer {
  readonly url: string
  readonly submissions: readonly Submission[]
  stop(): Promise<void>
}

/** The part of Blockscout's API that verification uses. Contracts created before the start are known. */
export async function startExplorer(provider: JsonRpcProvider): Promise<Explorer> {
  const creations = await creationsOn(provider)
  const submissions: Submission[] = []
  const answer = async (request: IncomingMessage): Promise<unknown> => {
    const { searchParams } = new URL(request.url ?? '', 'http://explorer')
    switch (searchParams.get('action')) {
      case 'getsourcecode':
        return { status: '1', result: [{ SourceCode: '' }] }
      case 'verifysourcecode': {
        const submission = judge(new URLSearchParams(await textOf(request)), creations)
        submissions.push(submission)
        return { status: '1', result: `${submissions.length - 1}` }
      }
      case 'checkverifystatus': {
        const { match } = submissions[Number(searchParams.get('guid'))] as Submission
        return { status: '1', result: match === 'none' ? 'Fail - Unable to verify' : 'Pass - Verified' }
      }
      default:
        return { status: '0', result: 'unknown action' }
    }
  }
  const server = createServer(async (request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(await answer(request)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    submissions,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

interface Call {
  readonly type: string
  readonly to?: string
  readonly input: string
  readonly calls?: readonly Call[]
}

const creationsIn = (call: Call): [string, string][] => [
  ...(call.type === 'CREATE' && call.to ? [[call.to.toLowerCase(), call.input] as [string, string]] : []),
  ...(call.calls ?? []).flatMap(creationsIn),
]

/** By address: creation code and constructor arguments of every contract created by a transaction or another contract. */
async function creationsOn(provider: JsonRpcProvider): Promise<Map<string, string>> {
  const creations = new Map<string, string>()
  for (let number = await provider.getBlockNumber(); number > 0; number--) {
    const block = await provider.getBlock(number, true)
    for (const { hash, to } of block?.prefetchedTransactions ?? []) {
      if (to !== null) continue
      const trace = await provider.send('debug_traceTransaction', [hash, { tracer: 'callTracer' }])
      for (const [address, code] of creationsIn(trace)) creations.set(address, code)
    }
  }
  return creations
}

/** Hex digits of the hash of sources and settings that the compiler appends; its length is in the last two bytes. */
const METADATA_DIGITS = 2 * 53

/** Compiles the submission and compares code and arguments with the contract's creation. */
function judge(form: URLSearchParams, creations: ReadonlyMap<string, string>): Submission {
  const address = form.get('contractaddress') ?? ''
  const name = form.get('contractname') ?? ''
  const input = JSON.parse(form.get('sourceCode') ?? '{}')
  const [source = '', contract = ''] = name.split(/:(?=[^:]+$)/)
  input.settings.outputSelection = { [source]: { [contract]: ['evm.bytecode.object'] } }
  const output = JSON.parse(solc.compile(JSON.stringify(input)))
  const code: string | undefined = output.contracts?.[source]?.[contract]?.evm.bytecode.object
  const created = creations.get(address.toLowerCase())?.slice(2)
  if (code === undefined || created === undefined) {
    return { address, name, match: 'none', problem: JSON.stringify(output.errors ?? 'no such contract') }
  }
  const compiler = `v${solc.version().replace('.Emscripten.clang', '')}`
  const areSame =
    form.get('compilerversion') === compiler &&
    created.slice(code.length) === (form.get('constructorArguments') ?? '') &&
    created.slice(0, code.length - METADATA_DIGITS) === code.slice(0, -METADATA_DIGITS)
  if (!areSame) return { address, name, match: 'none', problem: 'other code, arguments or compiler' }
  return { address, name, match: created.startsWith(code) ? 'exact' : 'partial' }
}
