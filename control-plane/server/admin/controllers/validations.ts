// `/validations`: reports the problems of rules; writes nothing.
import Type from 'typebox';
import { BadRequest, type Fields, op } from '../../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import { toLongAnswer } from '../long-answer.ts';
import { problemJson, toProblemJson } from '../problem-json.ts';

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Check rules',
    description:
      'One document as `yaml` (or a body of the type application/yaml), or all files of a configuration as `files`.',
    body: Type.Object({
      yaml: Type.Optional(Type.String()),
      files: Type.Optional(
        Type.Array(Type.Object({ path: Type.String({ maxLength: 1024 }), text: Type.String() }), {
          maxItems: 10_000,
        }),
      ),
    }),
    otherBodies: { 'application/yaml': Type.String() },
    returns: {
      200: Type.Object({ valid: Type.Boolean(), problems: Type.Array(problemJson) }),
    },
  });

  async POST({ yaml, files }: Fields<typeof Default.POST>) {
    if ((yaml === undefined) === (files === undefined)) {
      throw new BadRequest('give the field yaml or the field files', [
        { in: 'body', name: 'yaml', reason: 'either this or files is needed' },
      ]);
    }
    const given = files ?? [{ path: 'body.yaml', text: yaml ?? '' }];
    const { ok, problems } = await this.api.reading.findProblems({ files: given, problems: [] });
    return toLongAnswer({ valid: ok, problems: problems.map(toProblemJson) });
  }
}
