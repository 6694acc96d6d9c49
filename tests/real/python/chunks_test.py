"""Every read of the server's output gives whole frames.

eca-nvim parses each chunk that it reads on its own and keeps nothing for the next one: a frame that
is cut anywhere is lost to it. A reader that keeps up must therefore never see a cut.
"""

import json
import unittest

import eca_client


def parse_like_eca_nvim(chunk):
    """The messages of one chunk; raises when it begins or ends inside a frame."""
    frames, rest = eca_client.split_frames(chunk)
    if rest or not frames:
        raise AssertionError(f"a chunk of {len(chunk)} bytes ends inside a frame: …{rest[-120:]!r}")
    return [json.loads(frame) for frame in frames]


class Chunks(unittest.TestCase):
    def assert_whole(self, eca):
        for number, chunk in enumerate(eca.chunks):
            with self.subTest(chunk=number):
                parse_like_eca_nvim(chunk)

    def test_the_parser_sees_a_cut(self):
        frame = b'Content-Length: 2\r\n\r\n{}'
        self.assertEqual(parse_like_eca_nvim(frame + frame), [{}, {}])
        for cut in range(1, len(frame)):
            with self.assertRaises((AssertionError, ValueError)):
                parse_like_eca_nvim(frame[:cut])
                parse_like_eca_nvim(frame[cut:])

    def test_a_streamed_answer(self):
        with eca_client.Eca({}) as eca:
            chat = eca.request("chat/prompt", {"message": "stream 300 words"})["chatId"]
            eca.finish(chat)
            self.assertEqual(eca.leave(), 0)
            self.assertEqual(len("".join(eca.pieces(chat)).split()), 300)
            self.assertGreater(len(eca.chunks), 50)
            self.assert_whole(eca)

    def test_many_answers_at_once(self):
        with eca_client.Eca({}) as eca:
            chats = [f"chat-{number}" for number in range(8)]
            for chat in chats:
                eca.request("chat/prompt", {"chatId": chat, "message": "stream 2000 words"})
            for chat in chats:
                eca.finish(chat)
                self.assertEqual(len("".join(eca.pieces(chat)).split()), 2000)
            self.assert_whole(eca)


if __name__ == "__main__":
    eca_client.run_tests()
