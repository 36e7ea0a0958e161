"""The question: labelled in, labelled out."""
