/** Types generated from the description compile, accept a correct client program and reject incorrect ones. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import openapiTS, { astToString } from 'openapi-typescript'
import ts from 'typescript'

const TYPES = "import type { components, operations, paths } from './api.ts'\n"
const ORDER = `${TYPES}
type Body = paths['/v0/orders']['post']['requestBody']['content']['application/json']
`
const FIELDS = `market_id: 1, side: 'LONG', price: '100', quantity: '1', leverage: 2, salt: '7', signature: '0x00'`

/** Programs by what is wrong with them. */
const PROGRAMS = {
  nothing: `${ORDER}
type Answer = paths['/v0/orders']['post']['responses'][200]['content']['application/json']
type Refusal = paths['/v0/orders']['post']['responses'][400]['content']['application/json']
export const order: Body = { order_type: 'LIMIT', ${FIELDS} }
export const orderId = ({ order }: Answer): string => order.order_id
export const isOffTick = ({ details }: Refusal): boolean => details.code === 'TICK_SIZE'
export const missing: operations['getMarket']['responses'][404]['content']['application/json']['details']['code'] =
  'MARKET_NOT_FOUND'
export const code: components['schemas']['ErrorCode'] = 'TICK_SIZE'
`,
  'an unknown order type': `${ORDER}export const order: Body = { order_type: 'FOO', ${FIELDS} }`,
  'a missing field': `${ORDER}export const order: Body = { order_type: 'LIMIT', market_id: 1, side: 'LONG' }`,
  'an unknown field': `${ORDER}export const order: Body = { order_type: 'LIMIT', urgent: true, ${FIELDS} }`,
  'a code of another operation': `${TYPES}
export const code: operations['getMarket']['responses'][404]['content']['application/json']['details']['code'] =
  'ORDER_NOT_FOUND'
`,
} as const
type Mistake = keyof typeof PROGRAMS

const OPTIONS: ts.CompilerOptions = {
  ...{ strict: true, noEmit: true, skipLibCheck: false, types: [], lib: ['lib.es2022.d.ts'] },
  ...{ target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, allowImportingTsExtensions: true },
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
}

/** The errors of each file. */
function errorsIn(files: ReadonlyMap<string, string>): Map<string, string[]> {
  const host = ts.createCompilerHost(OPTIONS)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (path) => files.has(path) || fileExists(path)
  delete host.directoryExists
  host.readFile = (path) => files.get(path) ?? readFile(path)
  host.getSourceFile = (path, language) => {
    const text = files.get(path)
    return text === undefined ? getSourceFile(path, language) : ts.createSourceFile(path, text, language)
  }
  const program = ts.createProgram([...files.keys()], OPTIONS, host)
  const errors = new Map([...files.keys()].map((path): [string, string[]] => [path, []]))
  for (const { file, messageText } of ts.getPreEmitDiagnostics(program)) {
    const path = file?.fileName ?? 'options'
    errors.set(path, [...(errors.get(path) ?? []), ts.flattenDiagnosticMessageText(messageText, ' ')])
  }
  return errors
}

describe('types generated from the description', function () {
  this.timeout(120_000)
  let errors: Map<string, string[]>
  const pathOf = (mistake: Mistake): string => `/virtual/${mistake.replaceAll(' ', '-')}.ts`
  const errorsOf = (mistake: Mistake): string => (errors.get(pathOf(mistake)) ?? []).join('\n')

  before(async () => {
    const document = JSON.parse(readFileSync('docs/openapi.json', 'utf8'))
    const types = astToString(await openapiTS(document, { silent: true }))
    const programs = Object.entries(PROGRAMS).map(([mistake, text]): [string, string] => [
      pathOf(mistake as Mistake),
      text,
    ])
    errors = errorsIn(new Map([['/virtual/api.ts', types], ...programs]))
  })

  it('when a program uses the operations as described, it and the types compile', () => {
    expect(errors.get('/virtual/api.ts')).to.deep.equal([])
    expect(errors.get('options')).to.equal(undefined)
    expect(errorsOf('nothing')).to.equal('')
  })

  it('when a program names a word that is not listed, it does not compile', () => {
    expect(errorsOf('an unknown order type')).to.include('"FOO"')
    expect(errorsOf('a code of another operation')).to.include('ORDER_NOT_FOUND')
  })

  it('when a program omits a required field or adds an unknown one, it does not compile', () => {
    expect(errorsOf('a missing field')).to.include('missing the following properties')
    expect(errorsOf('an unknown field')).to.include("'urgent' does not exist")
  })
})
