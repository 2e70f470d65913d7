/** Reads the prose of the repository: comments, documents and test titles, each with its place. */
import { readFileSync } from 'node:fs'
import ts from 'typescript'

export interface Passage {
  readonly place: string
  readonly text: string
}

const textOf = (path: string): string => readFileSync(path, 'utf8')

const parse = (path: string): ts.SourceFile =>
  ts.createSourceFile(path, textOf(path), ts.ScriptTarget.Latest, true)

const placeIn = (source: ts.SourceFile, position: number): string =>
  `${source.fileName}:${source.getLineAndCharacterOfPosition(position).line + 1}`

/** Comments of a TypeScript file. Every comment stands before or behind some token. */
export function typescriptComments(path: string): Passage[] {
  const source = parse(path)
  const found = new Map<number, Passage>()
  const collect = (node: ts.Node): void => {
    const ranges = [
      ...(ts.getLeadingCommentRanges(source.text, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(source.text, node.getEnd()) ?? []),
    ]
    for (const { pos, end } of ranges)
      found.set(pos, { place: placeIn(source, pos), text: source.text.slice(pos, end) })
    for (const child of node.getChildren(source)) collect(child)
  }
  collect(source)
  return [...found.values()]
}

const isLineComment = ({ text }: Passage): boolean => text.startsWith('//')
const lineOf = ({ place }: Passage): number => Number(place.split(':').at(-1))

/** Comments of a TypeScript file without their marks, in the order of the file; line comments on consecutive lines are one. */
export function commentBlocks(path: string): Passage[] {
  const blocks: (Passage & { readonly endsAt: number })[] = []
  const comments = typescriptComments(path).toSorted((a, b) => lineOf(a) - lineOf(b))
  for (const comment of comments) {
    const last = blocks.at(-1)
    const isNext = last !== undefined && isLineComment(comment) && last.endsAt + 1 === lineOf(comment)
    if (isNext)
      blocks.splice(-1, 1, { ...last, text: `${last.text}\n${comment.text}`, endsAt: lineOf(comment) })
    else blocks.push({ ...comment, endsAt: isLineComment(comment) ? lineOf(comment) : Number.NaN })
  }
  return blocks.map(({ place, text }) => ({
    place,
    text: text
      .replace(/^\s*(\/\*+|\*\/|\*|\/\/)|\*\/$/gm, '')
      .replace(/\s+/g, ' ')
      .trim(),
  }))
}

const SOLIDITY_COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//g

export function solidityComments(path: string): Passage[] {
  const text = textOf(path)
  const lineOf = (index: number) => text.slice(0, index).split('\n').length
  return [...text.matchAll(SOLIDITY_COMMENT)].map((match) => ({
    place: `${path}:${lineOf(match.index)}`,
    text: match[0],
  }))
}

/** Lines of a Markdown document, without code. */
export const documentLines = (path: string): Passage[] =>
  textOf(path)
    .replace(/```[\s\S]*?```/g, (code) => code.replace(/[^\n]/g, ''))
    .split('\n')
    .map((text, index) => ({ place: `${path}:${index + 1}`, text: text.replace(/`[^`]*`/g, '') }))

/** The text of a string literal or template; an expression inside a template counts as an ellipsis. */
function literalText(node: ts.Node | undefined): string | null {
  if (node === undefined) return null
  if (ts.isStringLiteralLike(node)) return node.text
  if (!ts.isTemplateExpression(node)) return null
  return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('')
}

export interface Title extends Passage {
  /** Titles of the `describe` blocks around the test, outermost first. */
  readonly groups: readonly string[]
}

export function testTitles(path: string): Title[] {
  const source = parse(path)
  const found: Title[] = []
  const collect = (node: ts.Node, groups: readonly string[]): void => {
    let inner = groups
    if (ts.isCallExpression(node)) {
      const callee = node.expression.getText(source)
      const text = literalText(node.arguments[0])
      if (text !== null && /^describe(\.\w+)?$/.test(callee)) inner = [...groups, text]
      if (text !== null && /^it(\.\w+)?$/.test(callee))
        found.push({ place: placeIn(source, node.getStart()), text, groups })
    }
    ts.forEachChild(node, (child) => collect(child, inner))
  }
  collect(source, [])
  return found
}
