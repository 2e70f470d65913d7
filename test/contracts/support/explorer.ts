/**
 * A block explorer for tests. It compiles the submitted sources of small contracts and compares them with the deployed code, as real ones do. For a
 * large contract, which takes the compiler up to half a minute, it compares the hash of sources and settings that the deployed code ends with.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
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

/** Contracts with more hex digits of creation code and arguments are not compiled a second time. */
const MOST_COMPILED = 2 * 8_000

interface CompilerInput {
  readonly settings: {
    outputSelection?: Record<string, Record<string, readonly string[]>>
    readonly libraries?: Record<string, Record<string, string>>
  }
}

interface Submitted {
  readonly source: string
  readonly contract: string
  readonly input: CompilerInput
}

/** The contract's selected output of the compiler; throws with the compiler's errors. */
function compile({ source, contract, input }: Submitted, selected: string) {
  input.settings.outputSelection = { [source]: { [contract]: [selected] } }
  const output = JSON.parse(solc.compile(JSON.stringify(input)))
  const made = output.contracts?.[source]?.[contract]
  if (made === undefined) throw new Error(JSON.stringify(output.errors ?? 'no such contract'))
  return made
}

/** The creation code that the submitted sources and settings stand for. */
function codeOf(submitted: Submitted, created: string): string {
  if (created.length <= MOST_COMPILED)
    return compile(submitted, 'evm.bytecode.object').evm.bytecode.object as string
  const { source, contract, input } = submitted
  const { libraries = {}, ...settings } = input.settings
  // The addresses of libraries are settings of a submission only: the code was compiled without them.
  const { metadata } = compile({ ...submitted, input: { ...input, settings } }, 'metadata')
  const artifact = JSON.parse(
    readFileSync(`artifacts/${source.replace(/^project\//, '')}/${contract}.json`, 'utf8'),
  )
  const code = linked(artifact, libraries)
  if (!code.includes(ipfsHash(metadata))) throw new Error('other sources or settings')
  return code
}

interface Artifact {
  readonly bytecode: string
  readonly linkReferences: Record<string, Record<string, readonly { readonly start: number }[]>>
}

const ADDRESS_DIGITS = 40

/** The creation code of the artifact with the addresses of libraries. */
function linked(
  { bytecode, linkReferences }: Artifact,
  libraries: Record<string, Record<string, string>>,
): string {
  let code = bytecode.slice(2)
  for (const [source, names] of Object.entries(linkReferences))
    for (const [name, places] of Object.entries(names))
      for (const { start } of places) {
        const address = libraries[source]?.[name] ?? ''
        code =
          code.slice(0, 2 * start) + address.slice(2).toLowerCase() + code.slice(2 * start + ADDRESS_DIGITS)
      }
  return code
}

function varint(value: number): readonly number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}

/** The hash under which IPFS stores the text as a file of one block: a UnixFS file in a node of dag-pb, SHA-256. */
function ipfsHash(content: string): string {
  const bytes = Buffer.from(content)
  const size = varint(bytes.length)
  const file = Buffer.concat([Buffer.from([0x08, 0x02, 0x12, ...size]), bytes, Buffer.from([0x18, ...size])])
  const node = Buffer.concat([Buffer.from([0x0a, ...varint(file.length)]), file])
  return `1220${createHash('sha256').update(node).digest('hex')}`
}

/** Compares code and arguments of the submission with the contract's creation. */
function judge(form: URLSearchParams, creations: ReadonlyMap<string, string>): Submission {
  const address = form.get('contractaddress') ?? ''
  const name = form.get('contractname') ?? ''
  const [source = '', contract = ''] = name.split(/:(?=[^:]+$)/)
  const created = creations.get(address.toLowerCase())?.slice(2) ?? ''
  const none = (problem: string): Submission => ({ address, name, match: 'none', problem })
  let code: string
  try {
    code = codeOf({ source, contract, input: JSON.parse(form.get('sourceCode') ?? '{}') }, created)
  } catch (error) {
    return none((error as Error).message)
  }
  const compiler = `v${solc.version().replace('.Emscripten.clang', '')}`
  const areSame =
    form.get('compilerversion') === compiler &&
    created.slice(code.length) === (form.get('constructorArguments') ?? '') &&
    created.slice(0, code.length - METADATA_DIGITS) === code.slice(0, -METADATA_DIGITS)
  if (!areSame) return none('other code, arguments or compiler')
  return { address, name, match: created.startsWith(code) ? 'exact' : 'partial' }
}
