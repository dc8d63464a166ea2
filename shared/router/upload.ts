// The schema of a file in a multipart body.
import Type from 'typebox';

/** A schema keyword of the router, which descriptions omit. */
export const uploadKeyword = 'x-upload';

/** A `File`: its bytes are in memory, within the body's limit. */
export function upload(): Type.TUnsafe<File> {
  return Type.Unsafe<File>({
    contentMediaType: 'application/octet-stream',
    [uploadKeyword]: true,
  });
}

export function isUpload(schema: Readonly<Record<string, unknown>>): boolean {
  return schema[uploadKeyword] === true;
}
