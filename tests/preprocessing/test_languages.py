"""Languages are detected where a text is long enough, and counted in a sample that spans the collection."""

from narrlit.preprocessing.languages import detect_language, detect_languages

ENGLISH = "A young cellist found that her scholarship came from the man who had ruined her grandfather."
GERMAN = "Als der Winter kam, zog der Schmied mit seiner Tochter in die Stadt, denn er hatte das Haus verloren."


def test_languages_are_detected_if_a_text_is_long_enough():
    assert detect_language(ENGLISH) == "en"
    assert detect_language(GERMAN) == "de"
    assert detect_language("有一天乌鸦在山上的树上看见一块肉，就飞下来吃。") == "zh"
    assert detect_language("كان يا ما كان ثعلب جائع. هل رأى الثعلب الغراب؟ نعم، رأى غرابا على شجرة.") == "ar"
    assert detect_language("Oslo, Bergen, Trondheim") is None
    assert detect_language("狐狸看见乌鸦。") is None


def test_languages_of_many_texts_are_those_of_an_evenly_spaced_sample():
    assert detect_languages([GERMAN, ENGLISH, "Oslo", GERMAN]) == {"de": 2, "en": 1}
    assert detect_languages([ENGLISH] * 500 + [GERMAN] * 500) == {"en": 100, "de": 100}
    assert detect_languages([]) == {}
