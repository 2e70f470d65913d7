/** Generates the mutants of a Solidity file from its syntax tree: copies with one small fault each. */
import { readFileSync } from 'node:fs'
import { type Node, parse } from './solc.ts'

export interface Mutant {
  readonly file: string
  /** The function that contains the fault, or the contract. */
  readonly place: string
  readonly line: number
  /** The code before and after the change. */
  readonly was: string
  readonly is: string
  /** The whole file with the fault. */
  readonly source: string
}

/** An identifier that stays the same when line numbers change. */
export const nameOf = ({ file, place, was, is }: Mutant): string => `${file} ${place}: ${was} => ${is}`

type Replacement = readonly [node: Node, text: string]

// ---------------------------------------------------------------------- operators

const SWAPS: Readonly<Record<string, readonly string[]>> = {
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '==': ['!='],
  '!=': ['=='],
  '&&': ['||'],
  '||': ['&&'],
  '&': ['|'],
  '|': ['&'],
  '<<': ['>>'],
  '>>': ['<<'],
  '+=': ['-='],
  '-=': ['+='],
  '*=': ['/='],
  '|=': ['&='],
}

const YUL_SWAPS: Readonly<Record<string, string>> = {
  add: 'sub',
  sub: 'add',
  mul: 'add',
  shl: 'shr',
  shr: 'shl',
  sar: 'shr',
  and: 'or',
  or: 'and',
  eq: 'lt',
}

export function mutantsOf(file: string): Mutant[] {
  const bytes = readFileSync(file)
  const textOf = (node: Node): string => slice(bytes, ...spanOf(node))
  const mutants: Mutant[] = []
  const visit = (node: Node, place: string, within: Node | null): void => {
    const here = typeof node.name === 'string' && isPlace(node) ? node.name : place
    const isTie = within !== null && within.condition === node && isExtremum(within, textOf)
    for (const [target, text] of isTie
      ? replacementsBeyondTies(node, textOf)
      : replacementsOf(node, textOf)) {
      const [start, end] = spanOf(target)
      const source = slice(bytes, 0, start) + text + slice(bytes, end, bytes.length)
      const line = slice(bytes, 0, start).split('\n').length
      mutants.push({ file, place: here, line, ...contextOf(bytes, start, end, text), source })
    }
    for (const child of childrenOf(node)) visit(child, here, node)
  }
  visit(parse(file), file, null)
  return mutants
}

function replacementsOf(node: Node, textOf: (node: Node) => string): Replacement[] {
  switch (node.nodeType) {
    case 'BinaryOperation':
      return swapsOf(node, node.leftExpression as Node, node.rightExpression as Node, textOf)
    case 'Assignment':
      return swapsOf(node, node.leftHandSide as Node, node.rightHandSide as Node, textOf)
    case 'UnaryOperation':
      return ['!', '-', '~'].includes(node.operator as string)
        ? [[node, `(${textOf(node.subExpression as Node)})`]]
        : []
    case 'Literal':
      return node.kind === 'number' ? [[node, `(${textOf(node)} + 1)`]] : []
    case 'Conditional':
      return either(node.condition as Node)
    case 'IfStatement':
      return endsInRevert(node.trueBody as Node)
        ? [[node.condition as Node, 'false']]
        : either(node.condition as Node)
    case 'ExpressionStatement':
    case 'RevertStatement':
    case 'EmitStatement':
      return [[node, '0']]
    case 'Return':
      return returnsOf(node, textOf)
    default:
      return node.nodeType.startsWith('Yul') ? yulOf(node, textOf) : []
  }
}

function swapsOf(node: Node, left: Node, right: Node, textOf: (node: Node) => string): Replacement[] {
  return (SWAPS[node.operator as string] ?? []).map((operator) => [
    node,
    `${textOf(left)} ${operator} ${textOf(right)}`,
  ])
}

/** `a < b ? a : b` and `if (a > b) b = a`: minimum or maximum of two values. Choosing either of two equal values has the same result. */
function isExtremum(node: Node, textOf: (node: Node) => string): boolean {
  const compared = node.condition as Node
  if (compared.nodeType !== 'BinaryOperation' || !/^[<>]=?$/.test(compared.operator as string)) return false
  const chosen = choiceOf(node)
  const texts = [compared.leftExpression, compared.rightExpression].map((each) => textOf(each as Node))
  return chosen !== null && texts.sort().join() === chosen.map(textOf).sort().join()
}

function choiceOf(node: Node): readonly Node[] | null {
  if (node.nodeType === 'Conditional') return [node.trueExpression as Node, node.falseExpression as Node]
  const { expression } = (node.trueBody ?? {}) as { expression?: Node }
  if (node.nodeType !== 'IfStatement' || node.falseBody || expression?.operator !== '=') return null
  return [expression.leftHandSide as Node, expression.rightHandSide as Node]
}

/** The mutations of a comparison without the one that only chooses differently between equal values. */
const replacementsBeyondTies = (node: Node, textOf: (node: Node) => string): Replacement[] =>
  replacementsOf(node, textOf).slice(1)

const either = (condition: Node): Replacement[] => [
  [condition, 'true'],
  [condition, 'false'],
]

function endsInRevert(body: Node): boolean {
  if (body.nodeType !== 'Block') return body.nodeType === 'RevertStatement'
  const last = (body.statements as readonly Node[]).at(-1)
  return last?.nodeType === 'RevertStatement'
}

function returnsOf(node: Node, textOf: (node: Node) => string): Replacement[] {
  const value = node.expression as Node | null
  const type = (value?.typeDescriptions as { typeString?: string } | undefined)?.typeString
  if (!value || type === undefined) return []
  if (type === 'bool') return [[value, `!(${textOf(value)})`]]
  return /^u?int\d+$/.test(type) ? [[value, `(${textOf(value)}) + 1`]] : []
}

function yulOf(node: Node, textOf: (node: Node) => string): Replacement[] {
  if (node.nodeType === 'YulLiteral' && node.kind === 'number') return [[node, `add(${textOf(node)}, 1)`]]
  if (node.nodeType === 'YulExpressionStatement') return [[node, 'pop(0)']]
  if (node.nodeType !== 'YulFunctionCall') return []
  const name = node.functionName as Node
  const swap = YUL_SWAPS[name.name as string]
  return swap === undefined ? [] : [[name, swap]]
}

// ---------------------------------------------------------------------- syntax tree and source text

const isPlace = ({ nodeType }: Node): boolean =>
  ['FunctionDefinition', 'ContractDefinition', 'ModifierDefinition'].includes(nodeType)

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'nodeType' in value && 'src' in value

const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode)

function spanOf({ src }: Node): readonly [number, number] {
  const [start = 0, length = 0] = src.split(':').map(Number)
  return [start, start + length]
}

const slice = (bytes: Buffer, start: number, end: number): string =>
  bytes.subarray(start, end).toString('utf8')

/** The lines around the fault, before and after, on one line each. */
function contextOf(bytes: Buffer, start: number, end: number, text: string): { was: string; is: string } {
  const whole = slice(bytes, 0, bytes.length)
  const head = slice(bytes, 0, start)
  const from = head.lastIndexOf('\n') + 1
  const after = head.length + slice(bytes, start, end).length
  const next = whole.indexOf('\n', after)
  const to = next < 0 ? whole.length : next
  const oneLine = (line: string): string => line.replaceAll(/\s+/g, ' ').trim()
  return {
    was: oneLine(whole.slice(from, to)),
    is: oneLine(whole.slice(from, head.length) + text + whole.slice(after, to)),
  }
}
